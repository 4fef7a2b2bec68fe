//! Power cuts: which of the writes that nobody had flushed are on the disk.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use fastrand::Rng;

use super::disk::{Act, Image};
use super::filesystem::Kind;
use super::notes::{Note, Recorded, Stamped};

/// A moment, and what was kept of the writes since the last flush.
pub struct Cut {
    /// How much had been done to the disk.
    pub position: usize,
    pub how: &'static str,
    /// How much of it is there for sure: up to the last flush.
    sure: usize,
    kept: Vec<Piece>,
}

/// A part of a write, by its number.
type Piece = (usize, Range<usize>);

/// Which cuts to make.
#[derive(Clone, Copy, PartialEq)]
pub enum Aim {
    /// Any moment, any way.
    Anywhere,
    /// Somebody has just been told something, and little of what was not flushed is
    /// there: where a missing flush shows.
    AtPromises,
    /// The same where a job was just decided and nobody has applied it: whoever opens does.
    AtDecisions,
}

/// The ways in which writes get lost.
const WAYS: &[&str] = &["none", "few", "half", "all", "first", "all-but-one", "most", "torn"];

/// What was done to a disk, from which any moment of it can be had.
pub struct Film {
    pub acts: Vec<Act>,
    kind: Kind,
    /// Now and then, what was there for sure.
    stills: BTreeMap<usize, Image>,
}

/// This many things are done between two of them.
const BETWEEN: usize = 64;

impl Film {
    pub fn new(base: Image, acts: Vec<Act>, kind: Kind) -> Self {
        let mut stills = BTreeMap::from([(0, base.clone())]);
        let mut image = base;
        for (number, act) in acts.iter().enumerate() {
            if number % BETWEEN == 0 {
                stills.insert(number, image.clone());
            }
            if let Act::Write { offset, bytes } = act {
                image.put(*offset, bytes);
            }
        }
        Self { acts, kind, stills }
    }

    /// What the disk holds after a cut.
    pub fn image(&self, cut: &Cut) -> Image {
        let (from, still) = self.stills.range(..=cut.sure).next_back().expect("there is one of the beginning");
        let mut image = still.clone();
        let whole = self.acts[*from..cut.sure].iter().filter_map(|act| match act {
            Act::Write { offset, bytes } => Some((*offset, bytes.as_slice())),
            Act::Flush => None,
        });
        whole.for_each(|(offset, bytes)| image.put(offset, bytes));
        for (number, part) in &cut.kept {
            if let Act::Write { offset, bytes } = &self.acts[*number] {
                image.put(offset + part.start as u64, &bytes[part.clone()]);
            }
        }
        image
    }

    /// This many cuts, no two of which leave the same disk, in order.
    pub fn cuts(&self, told: &Recorded, count: usize, aim: Aim, random: &mut Rng) -> Vec<Cut> {
        let Recorded { start, notes } = told;
        // Those of whoever came before were told before this began.
        let counts = |note: &&Stamped| aim != Aim::AtDecisions || matches!(note.note, Note::Decided(_));
        let told = notes.iter().filter(counts).map(|note| note.position).filter(|at| at >= start);
        let told: Vec<usize> = told.collect();
        let (moments, ways) = if aim == Aim::Anywhere { (4, WAYS) } else { (2, &WAYS[..2]) };
        let flushes: Vec<usize> = (*start..self.acts.len()).filter(|at| matches!(self.acts[*at], Act::Flush)).collect();
        let (mut cuts, mut known) = (Vec::new(), HashSet::new());
        // Some moments are asked for again and again; there may not be as many as are wanted.
        for _ in 0..count * 50 {
            if cuts.len() == count {
                break;
            }
            // Right after somebody was told something, right before a flush, or whenever.
            let position = match random.u32(0..moments) {
                0 | 1 if !told.is_empty() => told[random.usize(0..told.len())],
                2 if !flushes.is_empty() => flushes[random.usize(0..flushes.len())],
                _ => random.usize(*start..=self.acts.len()),
            };
            let cut = self.cut(position, ways[random.usize(0..ways.len())], random);
            if known.insert((cut.sure, cut.kept.clone())) {
                cuts.push(cut);
            }
        }
        cuts.sort_by_key(|cut| cut.position);
        cuts
    }

    fn cut(&self, position: usize, how: &'static str, random: &mut Rng) -> Cut {
        let last_flush = self.acts[..position].iter().rposition(|act| matches!(act, Act::Flush));
        let sure = last_flush.map_or(0, |flush| flush + 1);
        let open = (sure..position).collect::<Vec<_>>();
        let chosen: Vec<usize> = match how {
            "none" => Vec::new(),
            "first" => open[..random.usize(0..=open.len())].to_vec(),
            "all-but-one" => {
                let lost = random.usize(0..open.len().max(1));
                open.into_iter().enumerate().filter(|(number, _)| *number != lost).map(|(_, act)| act).collect()
            }
            "half" => open.into_iter().filter(|_| random.bool()).collect(),
            "most" | "torn" => open.into_iter().filter(|_| random.u32(0..6) > 0).collect(),
            "few" => open.into_iter().filter(|_| random.u32(0..6) == 0).collect(),
            _ => open,
        };
        let kept = chosen.into_iter().flat_map(|number| self.pieces(number, how == "torn", random)).collect();
        Cut { position, how, sure, kept }
    }

    /// All of a write; or, if it is torn, some of its sectors.
    fn pieces(&self, number: usize, torn: bool, random: &mut Rng) -> Vec<Piece> {
        let Act::Write { offset, bytes } = &self.acts[number] else { return Vec::new() };
        if !torn || random.bool() {
            return vec![(number, 0..bytes.len())];
        }
        let sector = self.kind.sector(*offset);
        let sectors = (0..bytes.len()).step_by(sector).map(|at| at..(at + sector).min(bytes.len()));
        sectors.filter(|_| random.u32(0..3) > 0).map(|part| (number, part)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_is_there_and_of_the_rest_what_was_kept() {
        let write = |offset, byte| Act::Write { offset, bytes: vec![byte; 1024] };
        let acts = vec![write(0, 1), write(4096, 1), Act::Flush, write(512, 2), write(8192, 2), Act::Flush];
        let film = Film::new(Image::default(), acts, Kind::Xfs);
        let mut random = Rng::with_seed(1);
        let mut at = |position, how| film.image(&film.cut(position, how, &mut random));
        let of = |image: &Image| [0, 512, 1024, 4096, 8192].map(|offset| image.get(offset, 1)[0]);
        assert_eq!(of(&at(2, "none")), [0, 0, 0, 0, 0]);
        assert_eq!(of(&at(3, "none")), [1, 1, 0, 1, 0]);
        assert_eq!(of(&at(5, "none")), [1, 1, 0, 1, 0]);
        assert_eq!(of(&at(5, "all")), [1, 2, 2, 1, 2]);
        assert_eq!(of(&at(6, "none")), [1, 2, 2, 1, 2]);
        let halves: HashSet<_> = (0..50).map(|_| of(&at(5, "half"))).collect();
        assert_eq!(halves.len(), 4, "each of two writes is there or not: {halves:?}");
        let torn: HashSet<_> = (0..200).map(|_| of(&at(5, "torn"))).collect();
        assert!(torn.contains(&[1, 2, 0, 1, 2]), "the first sector of a write without its second: {torn:?}");
        assert!(torn.iter().all(|found| found[0] == 1 && found[3] == 1), "{torn:?}");
    }
}
