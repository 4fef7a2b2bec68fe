//! The selected job: one cursor over three lists.

use ratatui::crossterm::event::KeyCode;

use crate::cli::top::snapshot::{Row, Snapshot};

/// How far the keys for a page go.
const PAGE: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli::top) enum Panel {
    #[default]
    Running,
    Failed,
    Pending,
}

impl Panel {
    /// In the order of the screen.
    pub(in crate::cli::top) const ALL: [Self; 3] = [Self::Running, Self::Failed, Self::Pending];

    pub(in crate::cli::top) fn rows(self, snapshot: &Snapshot) -> &[Row] {
        match self {
            Self::Running => &snapshot.running,
            Self::Failed => &snapshot.failed,
            Self::Pending => &snapshot.pending,
        }
    }
}

#[derive(Default)]
pub(in crate::cli::top) struct Selection {
    pub(in crate::cli::top) panel: Panel,
    pub(in crate::cli::top) index: usize,
    /// The job, so that the cursor stays with it when rows come and go.
    id: Option<String>,
}

impl Selection {
    pub(in crate::cli::top) fn row<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Row> {
        self.panel.rows(snapshot).get(self.index)
    }

    /// With the same job if it is in the same list still; else on what has taken
    /// its place there, so that one failure after the other can be seen to.
    pub(in crate::cli::top) fn keep_in(&mut self, snapshot: &Snapshot) {
        let rows = self.panel.rows(snapshot);
        let same = self.id.as_ref().and_then(|id| rows.iter().position(|row| row.id == *id));
        match same {
            Some(index) => self.index = index,
            None if rows.is_empty() => {
                self.panel = Self::filled(snapshot).next().unwrap_or_default();
                self.index = 0;
            }
            None => self.index = self.index.min(rows.len() - 1),
        }
        self.id = self.row(snapshot).map(|row| row.id.clone());
    }

    pub(in crate::cli::top) fn moved(&mut self, code: KeyCode, snapshot: &Snapshot) {
        let last = self.panel.rows(snapshot).len().saturating_sub(1);
        match code {
            KeyCode::Up | KeyCode::Char('k') if self.index > 0 => self.index -= 1,
            KeyCode::Up | KeyCode::Char('k') => {
                if let Some(before) = self.panel_before(snapshot) {
                    (self.panel, self.index) = (before, before.rows(snapshot).len() - 1);
                }
            }
            KeyCode::Down | KeyCode::Char('j') if self.index < last => self.index += 1,
            KeyCode::Down | KeyCode::Char('j') => {
                if let Some(after) = self.panel_after(snapshot) {
                    (self.panel, self.index) = (after, 0);
                }
            }
            KeyCode::Tab => {
                self.panel = self.panel_after(snapshot).or_else(|| Self::filled(snapshot).next()).unwrap_or(self.panel);
                self.index = 0;
            }
            KeyCode::BackTab => {
                let last = || Self::filled(snapshot).last();
                self.panel = self.panel_before(snapshot).or_else(last).unwrap_or(self.panel);
                self.index = 0;
            }
            KeyCode::PageUp => self.index = self.index.saturating_sub(PAGE),
            KeyCode::PageDown => self.index = (self.index + PAGE).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.index = 0,
            KeyCode::End | KeyCode::Char('G') => self.index = last,
            _ => return,
        }
        self.id = self.row(snapshot).map(|row| row.id.clone());
    }

    fn filled(snapshot: &Snapshot) -> impl Iterator<Item = Panel> {
        Panel::ALL.into_iter().filter(|panel| !panel.rows(snapshot).is_empty())
    }

    fn panel_before(&self, snapshot: &Snapshot) -> Option<Panel> {
        Self::filled(snapshot).take_while(|panel| *panel != self.panel).last()
    }

    fn panel_after(&self, snapshot: &Snapshot) -> Option<Panel> {
        Self::filled(snapshot).skip_while(|panel| *panel != self.panel).nth(1)
    }
}
