//! Ids as people see them: as much of the beginning as names one job here, which
//! every command takes in place of the whole.

use std::collections::HashMap;

use jobq::Queue;

use super::output::for_people;

/// Of a ULID this is the time to the millisecond, so that jobs to come hardly ever
/// begin with it, too. Jobs of the same moment need more.
const LENGTHS: [usize; 5] = [10, 14, 18, 22, 25];

/// How many are shortened; longer lists have them whole.
const MOST: usize = 1_000;

/// Short ids by whole ones.
pub(crate) type Known = HashMap<String, String>;

pub(crate) struct Ids<'q> {
    queue: &'q Queue,
    known: Known,
    whole: bool,
}

impl<'q> Ids<'q> {
    /// Short on a terminal; whole for programs and files, which may be read much later.
    pub(crate) fn new(queue: &'q Queue) -> Self {
        Self { queue, known: Known::new(), whole: !for_people() }
    }

    /// With what was found out before, for those who show the same jobs again and again.
    pub(crate) fn knowing(queue: &'q Queue, known: Known) -> Self {
        // So that jobs that have come since find room.
        let known = if known.len() > MOST / 2 { Known::new() } else { known };
        Self { known, ..Self::new(queue) }
    }

    pub(crate) fn known(self) -> Known {
        self.known
    }

    pub(crate) fn short(&mut self, id: &str) -> String {
        if self.whole || !is_generated(id) {
            return id.to_owned();
        }
        if let Some(short) = self.known.get(id) {
            return short.clone();
        }
        if self.known.len() >= MOST {
            return id.to_owned();
        }
        let names_it = |length: &&usize| self.queue.resolve(&id[..**length]).is_ok_and(|found| found == id);
        let short = LENGTHS.iter().find(names_it).map_or(id, |length| &id[..*length]).to_owned();
        self.known.insert(id.to_owned(), short.clone());
        short
    }

    /// The ids within a sentence.
    pub(crate) fn in_text(&mut self, text: &str) -> String {
        let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.fold(String::new(), |told, word| {
            let id = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            told + &self.short(id) + &word[id.len()..]
        })
    }
}

/// A ULID or UUID. Names that plain SQL has given were chosen to be read.
fn is_generated(id: &str) -> bool {
    let bytes = id.as_bytes();
    match bytes.len() {
        26 => bytes.iter().all(u8::is_ascii_alphanumeric),
        36 => bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-'),
        _ => false,
    }
}
