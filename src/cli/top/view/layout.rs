//! Who gets how many lines.

use crate::cli::top::model::Panel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Types,
    Jobs(Panel),
}

impl Section {
    const ON_SCREEN: [Self; 4] =
        [Self::Types, Self::Jobs(Panel::Running), Self::Jobs(Panel::Failed), Self::Jobs(Panel::Pending)];
}

pub(super) struct Layout {
    /// In the order of the screen, each with its lines: a heading and rows. One of a
    /// single line has no heading.
    pub(super) parts: Vec<(Section, usize)>,
    /// With an empty line before each.
    pub(super) spaced: bool,
}

/// Divides lines among sections, which come in the order of their importance.
pub(super) fn divide(sections: &[Section], lines: usize, rows: impl Fn(Section) -> usize) -> Layout {
    // A heading and a row each; who does not get that is not there.
    let shown = &sections[..sections.len().min((lines / 2).max(1))];
    // Spaces are for those who have plenty.
    let spaced = shown.len() == sections.len() && lines >= 4 * shown.len();
    let mut left = lines - if spaced { shown.len() } else { 0 };
    // Of a list without rows a line says so.
    let mut parts: Vec<(Section, usize, usize)> = Vec::new();
    for section in shown {
        let first = left.min(2);
        left -= first;
        parts.push((*section, first, 1 + rows(*section).max(1)));
    }
    // A line each in turn, until all have what they need.
    while left > 0 && parts.iter().any(|(_, has, needs)| has < needs) {
        for (_, has, needs) in &mut parts {
            if left > 0 && has < needs {
                *has += 1;
                left -= 1;
            }
        }
    }
    let height = |section: &Section| parts.iter().find(|part| part.0 == *section).map(|part| (*section, part.1));
    Layout { parts: Section::ON_SCREEN.iter().filter_map(height).filter(|part| part.1 > 0).collect(), spaced }
}
