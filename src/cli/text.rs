//! Text by the columns it takes, which are not its characters: some take two.

use unicode_width::UnicodeWidthStr as _;

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

/// In lines of this width; words that are longer stay whole, so that they can be copied.
/// Colours take no room.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let width = |text: &str| width(&anstream::adapter::strip_str(text).to_string());
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
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
    fn a_long_text_goes_on_in_the_next_line() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible is long", 8), ["incomprehensible", "is long"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("\u{1b}[31mone\u{1b}[0m two three", 8), ["\u{1b}[31mone\u{1b}[0m two", "three"]);
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
