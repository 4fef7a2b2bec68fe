//! Where a row of `effects` stands in the bytes of a database, and each part of it.

use std::ops::Range;

/// The columns of the table, in order: a row has them all.
const COLUMNS: [&str; 14] = [
    "path",
    "job_id",
    "number",
    "op",
    "state",
    "precondition",
    "observed",
    "sha256",
    "size",
    "stage",
    "mtime",
    "inode",
    "applied_in",
    "applied_at",
];

/// One row: what SQLite notes of the kinds and lengths of its columns, and these.
pub struct EffectRow {
    pub header: Range<usize>,
    columns: Vec<Range<usize>>,
}

impl EffectRow {
    /// The row of this path and job, if it stands in one piece. The key comes first,
    /// directly behind the header; nothing else has the two in this order.
    pub fn find(bytes: &[u8], path: &str, job_id: &str) -> Option<Self> {
        let key = [path.as_bytes(), job_id.as_bytes()].concat();
        let places = bytes.windows(key.len()).enumerate().filter(|(_, bytes)| *bytes == key);
        places.map(|(place, _)| place).find_map(|place| Self::at(bytes, place, path.len()))
    }

    fn at(bytes: &[u8], body: usize, path: usize) -> Option<Self> {
        // A header begins with its own length, which is small here.
        (COLUMNS.len()..100.min(body)).find_map(|length| {
            let header = body - length..body;
            let kinds = kinds(&bytes[header.clone()])?;
            if kinds.len() != 1 + COLUMNS.len() || kinds[0] != length || length_of(kinds[1]) != path {
                return None;
            }
            let mut end = body;
            let columns = kinds[1..].iter().map(|kind| {
                end += length_of(*kind);
                end - length_of(*kind)..end
            });
            let columns: Vec<_> = columns.collect();
            (end <= bytes.len()).then_some(Self { header, columns })
        })
    }

    pub fn column(&self, name: &str) -> Range<usize> {
        let index = COLUMNS.iter().position(|known| *known == name).expect("a column of the table");
        self.columns[index].clone()
    }
}

/// The numbers of a header, each in bytes of which all but its last have the highest bit.
fn kinds(header: &[u8]) -> Option<Vec<usize>> {
    let (mut kinds, mut kind, mut open) = (Vec::new(), 0, false);
    for byte in header {
        kind = kind << 7 | usize::from(byte & 0x7f);
        open = byte & 0x80 != 0;
        if !open {
            kinds.push(kind);
            kind = 0;
        }
        if kind > 1 << 30 {
            return None;
        }
    }
    (!open).then_some(kinds)
}

/// How many bytes a column of this kind takes: nothing for NULL, 0 and 1.
fn length_of(kind: usize) -> usize {
    match kind {
        0 | 8.. if kind < 12 => 0,
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        _ => (kind - 12) / 2,
    }
}
