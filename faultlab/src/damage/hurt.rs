//! The damage itself: bytes of a file, changed as bad memory, a bad disk or a bad
//! controller would.

use std::path::{Path, PathBuf};

use fastrand::Rng;

use super::effect_row::EffectRow;
use super::truth::{self, Asked, Stand, What};
use crate::world::walk;

/// What is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Any byte of the database.
    Database,
    /// Any byte of its log.
    Log,
    /// What commits and decided jobs are to put in place.
    Stage,
    /// The input of a job that has not run.
    Payload,
    /// What a decided job is to do, where the database tells of it.
    Plan,
}

/// What has been done, in words, and to which jobs, where that is certain.
pub struct Harm {
    pub what: String,
    pub victims: Vec<String>,
    /// Something is other than it was.
    pub real: bool,
}

impl Part {
    pub fn harm(self, root: &Path, random: &mut Rng) -> Harm {
        let own = root.join(".jobq");
        match self {
            Self::Database => anywhere(&own.join("jobq.db"), 4096, 0, random),
            // A page and what the log says of it; the log has a header of its own.
            Self::Log => anywhere(&own.join("jobq.db-wal"), 4096 + 24, 32, random),
            Self::Stage => {
                let staged = staged(&own);
                let (file, victim) = random.choice(staged).expect("something is staged");
                Harm { victims: vec![victim], ..anywhere(&file, 16, 0, random) }
            }
            Self::Payload => {
                let all = truth::all();
                let open = |asked: &&Asked| matches!(asked.stand, Stand::Pending | Stand::Claimed);
                let asked = random.choice(all.iter().filter(open).collect::<Vec<_>>()).expect("there are some");
                let words = match &asked.what {
                    What::Create { content, .. } => content.split_inclusive(' ').map(str::to_owned).collect(),
                    What::Delete { path } => vec![format!("{{\"path\":\"{path}\",\"requireExists\":false}}")],
                    What::Note => vec![format!("{{\"key\":\"{}\"", asked.id)],
                    What::Write { .. } => unreachable!("a commit is not pending"),
                };
                Harm { victims: vec![asked.id.clone()], ..aimed(&own.join("jobq.db"), words, random) }
            }
            Self::Plan => {
                let all = truth::all();
                let decided = all.iter().filter(|asked| matches!(asked.stand, Stand::Decided | Stand::Accepted));
                let asked = random.choice(decided.collect::<Vec<_>>()).expect("there are some");
                let harm = if random.bool() { words_of(asked, &own, random) } else { row_of(asked, &own, random) };
                // What a job is to queue stands in the plan of that job, and so it is with a commit.
                let planner = truth::commit_of(asked).or_else(|| asked.is_follow_up().then(truth::leader));
                let victims = std::iter::once(asked.id.clone()).chain(planner).collect();
                Harm { victims, ..harm }
            }
        }
    }
}

/// What names a job and its files, wherever that stands.
fn words_of(asked: &Asked, own: &Path, random: &mut Rng) -> Harm {
    let mut words = vec![asked.id.clone()];
    for (path, content) in asked.changes() {
        words.push(path.to_owned());
        words.extend(content.map(|content| jobq::sha256_hex(content.as_bytes())));
    }
    let word = random.choice(words).expect("it has an id");
    aimed(&own.join("jobq.db"), vec![word], random)
}

/// What a plan consists of besides: what it is to find, whether it is done, and what
/// SQLite notes of its columns.
const PARTS_OF_A_ROW: [&str; 5] = ["state", "header", "stage", "precondition", "observed"];

fn row_of(asked: &Asked, own: &Path, random: &mut Rng) -> Harm {
    let file = own.join("jobq.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let part = random.choice(PARTS_OF_A_ROW).expect("there are some");
    let rows = asked.changes().into_iter().filter_map(|(path, _)| EffectRow::find(&bytes, path, &asked.id));
    let places = random.choice(rows.collect::<Vec<_>>()).map_or(0..0, |row| match part {
        "header" => row.header,
        column => row.column(column),
    });
    let Some(byte) = random.choice(places.collect::<Vec<_>>()) else {
        return Harm { what: "nothing to aim at".to_owned(), victims: Vec::new(), real: false };
    };
    let bit = random.u32(..8);
    bytes[byte] ^= 1 << bit;
    std::fs::write(&file, &bytes).unwrap();
    let what = format!("bit {bit} of byte {byte} flipped, in {part} of an effect of {}", asked.id);
    Harm { what, victims: Vec::new(), real: true }
}

/// Staged files, and the jobs they are for.
fn staged(own: &Path) -> Vec<(PathBuf, String)> {
    let names = walk(&own.join("stage")).into_iter().filter(|name| !name.ends_with('/'));
    let job = |name: &str| name.rsplit('/').next().and_then(|name| name.split('.').next()).expect("a name").to_owned();
    names.map(|name| (own.join("stage").join(&name), job(&name))).collect()
}

/// Anywhere in a file that consists of blocks after a header.
fn anywhere(file: &Path, block: usize, header: usize, random: &mut Rng) -> Harm {
    let before = std::fs::read(file).unwrap();
    let mut bytes = before.clone();
    let blocks = (bytes.len() - header) / block;
    let at = |number: usize| header + number * block..header + (number + 1) * block;
    let what = match random.u32(..10) {
        0 => {
            let length = random.usize(..bytes.len());
            bytes.truncate(length);
            format!("cut to {length} bytes")
        }
        1 if blocks > 0 => {
            let length = at(random.usize(..blocks)).start;
            bytes.truncate(length);
            format!("cut to {length} bytes, at the end of a block")
        }
        2 if blocks > 0 => {
            let zeroed = at(random.usize(..blocks));
            bytes[zeroed.clone()].fill(0);
            format!("{zeroed:?} zeroed")
        }
        3 if blocks > 1 => {
            let [one, other] = [(); 2].map(|()| random.usize(..blocks));
            let copy = bytes[at(one)].to_vec();
            bytes.copy_within(at(other), at(one).start);
            bytes[at(other)].copy_from_slice(&copy);
            format!("blocks {one} and {other} exchanged")
        }
        _ => {
            let (byte, bit) = (random.usize(..bytes.len()), random.u32(..8));
            bytes[byte] ^= 1 << bit;
            format!("bit {bit} of byte {byte} flipped")
        }
    };
    std::fs::write(file, &bytes).unwrap();
    let name = file.file_name().unwrap().display();
    Harm { what: format!("{name}: {what}"), victims: Vec::new(), real: bytes != before }
}

/// A bit of one of these words, wherever one of them stands.
fn aimed(file: &Path, mut words: Vec<String>, random: &mut Rng) -> Harm {
    let mut bytes = std::fs::read(file).unwrap();
    random.shuffle(&mut words);
    // A word that goes from one page to the next stands nowhere in one piece.
    for word in words {
        let places = bytes.windows(word.len()).enumerate().filter(|(_, bytes)| *bytes == word.as_bytes());
        let Some(place) = random.choice(places.map(|(place, _)| place).collect::<Vec<_>>()) else { continue };
        let (byte, bit) = (place + random.usize(..word.trim_end().len()), random.u32(..8));
        bytes[byte] ^= 1 << bit;
        std::fs::write(file, &bytes).unwrap();
        let what = format!("bit {bit} of byte {byte} flipped, in {word:?} at {place}");
        return Harm { what, victims: Vec::new(), real: true };
    }
    Harm { what: "nothing to aim at".to_owned(), victims: Vec::new(), real: false }
}
