//! Text by the columns it takes, which are not its characters: some take two.

use std::fmt::Write as _;

use jobq::printable;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

/// JSON on one line that a terminal and a log can show: what moves a cursor, turns the direction of text, takes no room
/// or ends a line is written as `\uXXXX`. Such characters are only ever in strings, so the JSON says the same.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let is_unsafe = |c: char| c > '~' && !printable(c.encode_utf8(&mut [0; 4])).starts_with(c);
    let text = serde_json::to_string(value)?;
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        let _ = if is_unsafe(c) { write!(escaped, "\\u{:04x}", u32::from(c)) } else { escaped.write_char(c) };
    }
    Ok(escaped)
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much as fits, with a mark if that is not all.
pub(crate) fn shorten(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut short = take(text, room.saturating_sub(1)).to_owned();
    if room > 0 {
        short.push('…');
    }
    short
}

/// The same, but a command of ours that would be cut off comes first.
pub(crate) fn command_first(text: &str, room: usize) -> String {
    let short = shorten(text, room);
    let command = text.split_once("`jobq ").and_then(|(_, rest)| rest.split_once('`')).map(|(verb, _)| verb);
    match command.map(|verb| format!("`jobq {verb}`")) {
        Some(command) if !short.contains(&command) => shorten(&format!("{command}: {text}"), room),
        _ => short,
    }
}

/// In lines of this width; words that are longer stay whole, so that they can be copied, and so do commands.
/// Colours take no room.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let width = |text: &str| width(&anstream::adapter::strip_str(text).to_string());
    let mut lines = vec![String::new()];
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What is between spaces. A command between backquotes is one word, if the quote is closed.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut left = Some(text);
    std::iter::from_fn(move || {
        let text = left?;
        let mut end = 0;
        loop {
            let (space, quote) = (text[end..].find(' '), text[end..].find('`'));
            let closing = match (space, quote) {
                (Some(space), Some(quote)) if quote < space => {
                    text[end + quote + 1..].find('`').map(|at| quote + 1 + at)
                }
                _ => None,
            };
            match (closing, space) {
                (Some(closing), _) => end += closing + 1,
                (None, Some(space)) => {
                    let (word, rest) = text.split_at(end + space);
                    left = Some(&rest[1..]);
                    return Some(word);
                }
                (None, None) => {
                    left = None;
                    return Some(text);
                }
            }
        }
    })
}

/// For a screen, which shows nothing beyond its edge: in lines of at most this width,
/// broken after a space if one is near; each has at least one character.
pub(crate) fn fold(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left = text;
    loop {
        let mut line = take(left, room);
        if line.is_empty() {
            line = &left[..left.chars().next().map_or(0, char::len_utf8)];
        } else if line.len() < left.len()
            && let Some(space) = line.rfind(' ').filter(|at| *at > line.len() / 2)
        {
            line = &line[..=space];
        }
        lines.push(line.to_owned());
        left = &left[line.len()..];
        if left.is_empty() {
            return lines;
        }
    }
}

/// The longest beginning that fits.
fn take(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += width(character.encode_utf8(&mut [0; 4]));
        if used > room {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_the_columns_it_takes() {
        assert_eq!([0, 1, 3, 4, 5].map(|room| shorten("abcd", room)), ["", "…", "ab…", "abcd", "abcd"]);
        assert_eq!([2, 3, 4, 6].map(|room| shorten("日本語", room)), ["…", "日…", "日…", "日本語"]);
    }

    #[test]
    fn what_to_do_is_the_last_to_be_cut_off() {
        let text = "it is gone: `jobq reclaim`, or so";
        assert_eq!(command_first(text, 33), text);
        assert_eq!(command_first(text, 27), "it is gone: `jobq reclaim`…");
        assert_eq!(command_first(text, 26), "`jobq reclaim`: it is gon…");
        assert_eq!(command_first(text, 10), "`jobq rec…");
        assert_eq!(command_first("`ls` is no command of ours", 10), "`ls` is n…");
        assert_eq!(command_first("not `jobq closed", 10), "not `jobq…");
    }

    #[test]
    fn a_long_text_goes_on_in_the_next_line() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible is long", 8), ["incomprehensible", "is long"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("a  b", 8), ["a  b"], "spaces stay");
        assert_eq!(wrap("\u{1b}[31mone\u{1b}[0m two three", 8), ["\u{1b}[31mone\u{1b}[0m two", "three"]);
    }

    #[test]
    fn a_command_stays_whole() {
        assert_eq!(wrap("try `jobq list`; or not", 8), ["try", "`jobq list`;", "or not"]);
        assert_eq!(wrap("(`a b` and `c d`) e", 4), ["(`a b`", "and", "`c d`)", "e"]);
        assert_eq!(wrap("`a b``c d` e", 4), ["`a b``c d`", "e"]);
        assert_eq!(wrap("it`s one two three", 8), ["it`s one", "two", "three"], "one that is not closed is none");
    }

    #[test]
    fn lines_of_a_screen_have_all_of_the_text() {
        assert_eq!(fold("abcde", 2), ["ab", "cd", "e"]);
        assert_eq!(fold("", 2), [""]);
        assert_eq!(fold("one two three", 8), ["one two ", "three"]);
        assert_eq!(fold("a very-long-word", 8), ["a very-l", "ong-word"]);
        assert_eq!(fold("日本", 1), ["日", "本"], "what does not fit stands alone");
        assert_eq!(fold("日本", 3), ["日", "本"]);
    }
}
