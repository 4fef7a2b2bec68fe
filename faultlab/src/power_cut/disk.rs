//! A disk: what is on it, and everything that was ever done to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Result, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

const BLOCK: usize = 4096;

/// What a disk holds. Blocks of nothing but zeros may be absent; copies share
/// what they have in common.
#[derive(Clone, Default)]
pub struct Image {
    pub size: u64,
    blocks: BTreeMap<u64, Arc<[u8; BLOCK]>>,
}

impl Image {
    /// The content of a file.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let mut image = Self { size: file.metadata()?.len(), blocks: BTreeMap::new() };
        let mut block = [0; BLOCK];
        for number in 0..image.size / BLOCK as u64 {
            file.read_exact_at(&mut block, number * BLOCK as u64)?;
            if block != [0; BLOCK] {
                image.blocks.insert(number, Arc::new(block));
            }
        }
        Ok(image)
    }

    /// A new file with this content, which takes no more room than it has to.
    pub fn write(&self, path: &Path) -> Result<()> {
        let file = File::create_new(path)?;
        file.set_len(self.size)?;
        for (number, block) in &self.blocks {
            file.write_all_at(&block[..], number * BLOCK as u64)?;
        }
        Ok(())
    }

    pub fn get(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        for (number, within, part) in parts(offset, length) {
            if let Some(block) = self.blocks.get(&number) {
                bytes[part.clone()].copy_from_slice(&block[within..within + part.len()]);
            }
        }
        bytes
    }

    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        for (number, within, part) in parts(offset, bytes.len()) {
            let block = self.blocks.entry(number).or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(block)[within..within + part.len()].copy_from_slice(&bytes[part]);
        }
    }
}

/// The blocks that a range is in: the number of each, where in the block it
/// begins, and which bytes of the range are there.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let place = offset + at as u64;
        let within = usize::try_from(place % BLOCK as u64).expect("less than a block");
        let end = length.min(at + BLOCK - within);
        (at < length).then(|| (place / BLOCK as u64, within, std::mem::replace(&mut at, end)..end))
    })
}

/// Something that was done to a disk.
pub enum Act {
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
    /// What was written before is there to stay.
    Flush,
}

/// Saves what was done to a disk, in order.
pub fn save(acts: &[Act], path: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for act in acts {
        let (offset, bytes) = match act {
            Act::Write { offset, bytes } => (*offset, bytes.as_slice()),
            Act::Flush => (u64::MAX, &[][..]),
        };
        file.write_all(&offset.to_le_bytes())?;
        file.write_all(&(bytes.len() as u64).to_le_bytes())?;
        file.write_all(bytes)?;
    }
    file.flush()
}

pub fn load(path: &Path) -> Result<Vec<Act>> {
    let file = File::open(path)?;
    let mut left = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut acts = Vec::new();
    while left > 0 {
        let mut head = [[0; 8]; 2];
        file.read_exact(head.as_flattened_mut())?;
        let [offset, length] = head.map(u64::from_le_bytes);
        let mut bytes = vec![0; usize::try_from(length).expect("it was in memory once")];
        file.read_exact(&mut bytes)?;
        left -= 16 + length;
        acts.push(if offset == u64::MAX { Act::Flush } else { Act::Write { offset, bytes } });
    }
    Ok(acts)
}
