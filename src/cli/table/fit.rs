//! Which columns are shown, and how wide each is. Texts are cut, then columns left out,
//! the least important first.

use super::{Head, Kind};

/// Between two columns.
pub(super) const GAP: usize = 2;
/// A text that is cut keeps at least this much, as long as something can be left out.
const LEAST: usize = 12;
/// And this much, when nothing can.
const LEAST_ALONE: usize = 8;
/// A name that nobody would type keeps this much, as a ULID has it. Beginnings that name one job are seldom longer.
const LEAST_NAME: usize = 26;
/// In less a note is not to be understood: it goes below.
const LEAST_NOTE: usize = 24;
/// What is left of a word of a few that it can be guessed from.
const LEAST_WORD: usize = 4;

/// A column, and the room for it.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) column: usize,
    pub(super) width: usize,
}

/// The columns that are shown beside each other.
pub(super) fn fit(head: &[Head], kinds: &[Kind], widths: &[usize], room: usize) -> Vec<Shown> {
    let all: Vec<Shown> = widths.iter().enumerate().map(|(column, width)| Shown { column, width: *width }).collect();
    let fitting = Fitting { head, kinds, room };
    if kinds.last() != Some(&Kind::Note) {
        return fitting.without_note(all);
    }
    let others = all[..all.len() - 1].to_vec();
    fitting.with_note(all).unwrap_or_else(|| fitting.without_note(others))
}

struct Fitting<'a> {
    head: &'a [Head],
    kinds: &'a [Kind],
    room: usize,
}

impl Fitting<'_> {
    /// With the note beside the others, unless that takes something that is as important.
    fn with_note(&self, mut shown: Vec<Shown>) -> Option<Vec<Shown>> {
        let note = shown.pop()?;
        let least = note.width.min(LEAST_NOTE);
        let rank = self.head[note.column].1;
        loop {
            let left = self.room.checked_sub(total(&shown) + GAP);
            if let Some(left) = left.filter(|left| *left >= least) {
                shown.push(Shown { width: note.width.min(left), ..note });
                return Some(shown);
            }
            if !self.cut_a_text(&mut shown, LEAST) && !self.leave_out(&mut shown, rank) {
                return None;
            }
        }
    }

    fn without_note(&self, mut shown: Vec<Shown>) -> Vec<Shown> {
        loop {
            let over = total(&shown).saturating_sub(self.room);
            if over == 0 {
                return shown;
            }
            if self.cut_a_text(&mut shown, LEAST)
                || self.leave_out(&mut shown, 0)
                || self.cut_a_text(&mut shown, LEAST_ALONE)
            {
                continue;
            }
            match &mut shown[..] {
                [_, .., last] if last.width >= over + LEAST_WORD => last.width -= over,
                [_, _, ..] => drop(shown.pop()),
                [only] => only.width = self.room,
                [] => return shown,
            }
        }
    }

    /// One column of the widest, so that several that are wide share what is missing.
    fn cut_a_text(&self, shown: &mut [Shown], least: usize) -> bool {
        let least = |one: &Shown| match self.kinds[one.column] {
            Kind::Text => least,
            Kind::Whole => LEAST_NAME,
            _ => usize::MAX,
        };
        let texts = shown.iter_mut().filter(|one| one.width > least(one));
        let widest = texts.max_by_key(|one| one.width);
        widest.map(|one| one.width -= 1).is_some()
    }

    /// The least important one, if it is less important than this.
    fn leave_out(&self, shown: &mut Vec<Shown>, than: u8) -> bool {
        let rank = |one: &Shown| self.head[one.column].1;
        let least = (0..shown.len()).max_by_key(|at| rank(&shown[*at])).filter(|at| rank(&shown[*at]) > than);
        least.map(|at| shown.remove(at)).is_some()
    }
}

fn total(shown: &[Shown]) -> usize {
    shown.iter().map(|one| one.width).sum::<usize>() + GAP * shown.len().saturating_sub(1)
}
