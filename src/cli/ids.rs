//! Ids as people see them: as much of the beginning as names one job here, which
//! every command takes in place of the whole.

use std::collections::HashMap;

use jobq::Queue;

use super::output::for_people;

/// Of a ULID this is the time to the millisecond, so that jobs to come hardly ever
/// begin with it, too. Jobs of the same moment need more, and so do names that plain SQL
/// has given, of which some may be the beginning of others.
const LENGTHS: [usize; 10] = [10, 14, 18, 22, 25, 30, 36, 44, 52, 60];

/// Names up to this are not shortened: they were chosen to be read, and take no room from others.
const READABLE: usize = 14;

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
        if self.whole || id.len() <= READABLE {
            return id.to_owned();
        }
        if let Some(short) = self.known.get(id) {
            return short.clone();
        }
        if self.known.len() >= MOST {
            return id.to_owned();
        }
        let names_it = |start: &&str| self.queue.resolve(start).is_ok_and(|found| found == id);
        let starts = LENGTHS.iter().filter_map(|length| id.get(..*length));
        let short =
            starts.filter(|start| start.len() < id.len()).find(|start| names_it(start)).unwrap_or(id).to_owned();
        self.known.insert(id.to_owned(), short.clone());
        short
    }

    /// The ids within a sentence.
    pub(crate) fn in_text(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let words = text.split_inclusive(|c: char| !is_part(c));
        words.fold(String::new(), |told, word| {
            let id = word.trim_end_matches(|c: char| !is_part(c));
            told + &self.short(id) + &word[id.len()..]
        })
    }
}
