//! Paths at which something was done, remembered in a bounded space.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

/// More paths than this are no longer remembered one by one.
pub(super) const MOST: usize = 5_000;

/// None is ever forgotten; of many, some that were not there are taken for it, too.
pub(super) enum Places {
    Few(BTreeSet<String>),
    Many(Blur),
}

impl Default for Places {
    fn default() -> Self {
        Self::Few(BTreeSet::new())
    }
}

impl Places {
    pub(super) fn add(&mut self, path: String) {
        match self {
            Self::Few(paths) => {
                paths.insert(path);
                if paths.len() > MOST {
                    *self = Self::Many(Blur::default().with(paths));
                }
            }
            Self::Many(blur) => blur.add(&path),
        }
    }

    pub(super) fn add_all(&mut self, more: Self) {
        match (&mut *self, more) {
            (_, Self::Few(paths)) => paths.into_iter().for_each(|path| self.add(path)),
            (Self::Many(blur), Self::Many(more)) => blur.add_all(&more),
            (Self::Few(paths), Self::Many(more)) => *self = Self::Many(more.with(paths)),
        }
    }

    pub(super) fn are_none(&self) -> bool {
        matches!(self, Self::Few(paths) if paths.is_empty())
    }

    pub(super) fn are_many(&self) -> bool {
        matches!(self, Self::Many(_))
    }
}

/// A Bloom filter: two bits for each path, of a million.
pub(super) struct Blur(Vec<u64>);

const BITS: usize = 1 << 20;

impl Default for Blur {
    fn default() -> Self {
        Self(vec![0; BITS / 64])
    }
}

impl Blur {
    fn with(mut self, paths: &BTreeSet<String>) -> Self {
        for path in paths {
            self.add(path);
        }
        self
    }

    fn add(&mut self, path: &str) {
        for (word, bit) in bits(path) {
            self.0[word] |= bit;
        }
    }

    fn add_all(&mut self, more: &Self) {
        for (word, more) in self.0.iter_mut().zip(&more.0) {
            *word |= more;
        }
    }

    /// Whether something may have been done here, or to a folder this is in.
    pub(super) fn touches(&self, path: &str) -> bool {
        let has = |path: &str| bits(path).iter().all(|(word, bit)| self.0[*word] & bit != 0);
        has(path) || path.match_indices('/').any(|(end, _)| has(&path[..end]))
    }
}

fn bits(path: &str) -> [(usize, u64); 2] {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(path);
    [hash, hash >> 32].map(|hash| {
        let bit = usize::try_from(hash % BITS as u64).unwrap_or(0);
        (bit / 64, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(names: std::ops::Range<usize>) -> Places {
        let mut places = Places::default();
        names.for_each(|n| places.add(format!("d/{n}")));
        places
    }

    #[test]
    fn few_are_known_exactly_and_of_many_none_is_forgotten() {
        let Places::Few(few) = some(0..MOST) else { panic!("these are few") };
        assert_eq!(few.len(), MOST);
        let mut places = some(0..MOST + 1);
        places.add_all(some(6_000..6_001));
        places.add_all(some(7_000..7_001 + MOST));
        let mut other = some(20_000..20_001);
        other.add_all(places);
        let Places::Many(blur) = other else { panic!("these are many") };
        for n in (0..=MOST).chain([6_000, 20_000]).chain(7_000..7_001 + MOST) {
            assert!(blur.touches(&format!("d/{n}")) && blur.touches(&format!("d/{n}/below")));
        }
        let strangers = (0..10_000).filter(|n| blur.touches(&format!("e/{n}"))).count();
        assert!(strangers < 1_000, "{strangers} of 10,000 others are taken for one of them");
    }
}
