//! The end of what a program prints. It may print more than there is memory.

/// Keeps the last bytes of a stream.
pub(super) struct Tail {
    bytes: Vec<u8>,
    keep: usize,
    was_cut: bool,
}

impl Tail {
    pub(super) fn new(keep: usize) -> Self {
        Self { bytes: Vec::new(), keep, was_cut: false }
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        // Rarely, so that a long stream is not moved byte by byte.
        if self.bytes.len() > self.keep.saturating_mul(2).max(self.keep + (64 << 10)) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let too_many = self.bytes.len().saturating_sub(self.keep);
        self.was_cut |= too_many > 0;
        self.bytes.drain(..too_many);
    }

    /// What was kept, and whether there was more before it.
    pub(super) fn end(mut self) -> (Vec<u8>, bool) {
        self.cut();
        (self.bytes, self.was_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_kept_whatever_its_length() {
        let (mut tail, mut all) = (Tail::new(1000), Vec::new());
        for number in 0..100_000_u32 {
            let part = number.to_string();
            tail.push(part.as_bytes());
            all.extend_from_slice(part.as_bytes());
            assert!(tail.bytes.len() <= 1000 + (64 << 10));
        }
        assert_eq!(tail.end(), (all[all.len() - 1000..].to_vec(), true));
        let mut short = Tail::new(3);
        short.push(b"abc");
        assert_eq!(short.end(), (b"abc".to_vec(), false));
        let mut none = Tail::new(0);
        none.push(b"abc");
        assert_eq!(none.end(), (Vec::new(), true));
    }
}
