//! Text by the columns it takes, which are not its characters: some take two.

use ratatui::text::Span;

pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// As much as fits, with a mark if that is not all.
pub(super) fn shorten(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut short = take(text, room.saturating_sub(1)).to_owned();
    if room > 0 {
        short.push('…');
    }
    short
}

/// In lines of at most this width, broken after a space if one is near; each has at
/// least one character.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
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
    fn lines_have_all_of_the_text() {
        assert_eq!(wrap("abcde", 2), ["ab", "cd", "e"]);
        assert_eq!(wrap("", 2), [""]);
        assert_eq!(wrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap("a very-long-word", 8), ["a very-l", "ong-word"]);
        assert_eq!(wrap("日本", 1), ["日", "本"], "what does not fit stands alone");
        assert_eq!(wrap("日本", 3), ["日", "本"]);
    }
}
