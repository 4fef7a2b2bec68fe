//! Taking the prompt out of what a program has printed. It may print all of it or a
//! piece, in lines of its own, as JSON, or behind a `>`: so what is compared is the
//! letters alone, and every stretch of [`TELLING`] of them that the prompt has, too,
//! is taken out.

use std::collections::HashSet;
use std::ops::Range;

/// So many letters in a row that the prompt has as well come from it. Fewer are words
/// like any other.
const TELLING: usize = 12;
/// Bytes of the text that are looked at, from its end.
const LOOKED_AT: usize = 1 << 20;
/// Bits of the first sieve, by which most of a long prompt is passed over.
const SIEVE: usize = 1 << 24;

/// What is left of a text.
pub(super) struct Own {
    pub(super) text: String,
    /// Whether its beginning was too much to be looked at.
    pub(super) cut: bool,
}

/// The text with `[prompt]` in place of what comes from the prompt.
pub(super) fn without_prompt(text: &str, prompt: &str) -> Own {
    let cut = text.len() > LOOKED_AT;
    let mut start = text.len().saturating_sub(LOOKED_AT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    if cut {
        // A piece of the prompt that is too short to be known as one may be left where it was cut.
        start += letters(&text[start..], false).get(TELLING).map_or(0, |letter| letter.place.start);
    }
    let text = &text[start..];
    let mut echoed = echoed(&letters(text, false), prompt);
    if text.contains('\\') {
        echoed.extend(self::echoed(&letters(text, true), prompt));
        echoed.sort_by_key(|place| place.start);
    }
    let (mut own, mut done) = (String::with_capacity(text.len()), 0);
    for place in echoed {
        if place.start >= done {
            own.push_str(&text[done..place.start]);
            own.push_str("[prompt]");
        }
        done = done.max(place.end);
    }
    own.push_str(&text[done..]);
    Own { text: own, cut }
}

/// Where the letters of the text are also in the prompt. In time that grows with the
/// sum of both, and in memory that grows with the text.
fn echoed(letters: &[Letter], prompt: &str) -> Vec<Range<usize>> {
    let stretches: Vec<u64> = stretches(letters.iter().map(|letter| letter.letter)).collect();
    if stretches.is_empty() || prompt.len() < TELLING {
        return Vec::new();
    }
    let mut sieve = vec![0_u64; SIEVE / 64];
    let bit = |stretch: u64| {
        let bit = usize::try_from(stretch % SIEVE as u64).unwrap_or(0);
        (bit / 64, 1_u64 << (bit % 64))
    };
    for stretch in &stretches {
        let (word, mask) = bit(*stretch);
        sieve[word] |= mask;
    }
    let is_in_the_text = |stretch: &u64| {
        let (word, mask) = bit(*stretch);
        sieve[word] & mask != 0
    };
    let of_prompt = self::stretches(prompt.chars().filter(|c| is_letter(*c)));
    let both: HashSet<u64> = of_prompt.filter(is_in_the_text).collect();
    let mut places: Vec<Range<usize>> = Vec::new();
    for (at, _) in stretches.iter().enumerate().filter(|(_, stretch)| both.contains(stretch)) {
        let place = letters[at].place.start..letters[at + TELLING - 1].place.end;
        // Two with nothing but spaces and signs between them are one.
        let before = at.checked_sub(1).map(|before| letters[before].place.end);
        match places.last_mut() {
            Some(last) if place.start <= last.end || before == Some(last.end) => last.end = place.end,
            _ => places.push(place),
        }
    }
    places
}

/// A number for each stretch of letters, the same for the same letters.
fn stretches(letters: impl Iterator<Item = char>) -> impl Iterator<Item = u64> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let leaves = (0..TELLING).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let (mut ring, mut seen, mut sum) = ([0_u64; TELLING], 0_usize, 0_u64);
    letters.filter_map(move |letter| {
        let (new, old) = (u64::from(letter) + 1, &mut ring[seen % TELLING]);
        sum = sum.wrapping_mul(BASE).wrapping_add(new).wrapping_sub(old.wrapping_mul(leaves));
        *old = new;
        seen += 1;
        // The high bits are the mixed ones.
        (seen >= TELLING).then_some(sum ^ (sum >> 32))
    })
}

struct Letter {
    letter: char,
    place: Range<usize>,
}

/// What programs leave as it is when they print something: no spaces, no signs.
fn is_letter(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !c.is_ascii_punctuation()
}

/// The letters of a text and where they are; `escaped`: as a JSON text is read.
fn letters(text: &str, escaped: bool) -> Vec<Letter> {
    let (mut letters, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let (letter, length) = if escaped && c == '\\' { unescaped(&text[at..]) } else { (Some(c), c.len_utf8()) };
        if let Some(letter) = letter.filter(|letter| is_letter(*letter)) {
            letters.push(Letter { letter, place: at..at + length });
        }
        at += length;
    }
    letters
}

/// The character that an escape at the beginning of the text stands for, if it may be
/// a letter, and the escape's length.
fn unescaped(text: &str) -> (Option<char>, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    match text[1..].chars().next() {
        Some('u') => {
            let read = |units: &[u16]| char::decode_utf16(units.iter().copied()).next()?.ok();
            let pair = || Some((read(&[unit(0)?, unit(6)?])?, 12));
            let found = unit(0).and_then(|one| read(&[one])).map(|letter| (letter, 6)).or_else(pair);
            found.map_or((None, 1), |(letter, length)| (Some(letter), length))
        }
        // Space, or a sign.
        Some('n' | 'r' | 't' | 'b' | 'f' | '"' | '\\' | '/') => (None, 2),
        _ => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Say \"nothing\" of C:\\new\nand the merger — für\n1. our\n2. good\n3. friends 😀";

    fn own(text: &str, prompt: &str) -> String {
        without_prompt(text, prompt).text
    }

    #[test]
    fn a_prompt_is_known_however_it_is_printed() {
        let json = serde_json::to_string(PROMPT).unwrap();
        let ascii: String = json.encode_utf16().fold(String::new(), |text, unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => text + &char::from(byte).to_string(),
            _ => format!("{text}\\u{unit:04x}"),
        });
        let quoted = PROMPT.lines().flat_map(|line| ["\x1b[2m> ", line, "\n"]).collect::<String>();
        let words = PROMPT.split_whitespace().collect::<Vec<_>>();
        for echoed in [PROMPT.to_owned(), json, ascii, words.join(" "), words.join("\n  ")] {
            let left = own(&format!("oops: {echoed} so"), PROMPT);
            assert!(left.starts_with("oops: ") && left.ends_with(" so"), "{left}");
            let rest = left.replace("[prompt]", "");
            assert_eq!(rest.chars().filter(|c| is_letter(*c)).collect::<String>(), "oopsso", "{left}");
        }
        assert!(!own(&quoted, PROMPT).contains("merger"));
    }

    #[test]
    fn any_piece_of_it_is_known_and_other_words_stay() {
        let prompt: String = (0..5_000).flat_map(|n| [String::from("word "), n.to_string(), ", ".into()]).collect();
        for piece in [&prompt[..30], &prompt[1_000..1_040], &prompt[prompt.len() - 30..]] {
            assert_eq!(own(&format!("no: \"{piece}\""), &prompt).matches("word").count(), 0, "{piece}");
        }
        assert_eq!(own("another word 17", &prompt), "another word 17", "too little to come from it");
        assert_eq!(own("another word", ""), "another word");
        assert_eq!(own("short", "short"), "short");
    }

    /// Not in the time of one times the other.
    #[test]
    fn long_texts_are_no_trouble() {
        let prompt: String = (0..600_000).flat_map(|n| [n.to_string(), " ".into()]).collect();
        let cut = &prompt[prompt.len() - (3 << 20)..];
        let left = without_prompt(&format!("{cut} and why"), &prompt);
        assert!(left.cut);
        assert_eq!(left.text.trim(), "[prompt]  and why");
        let same = "a".repeat(2 << 20);
        assert_eq!(own(&same, &same), "[prompt]");
    }
}
