//! What the screen is about, and how it changes by what happens. Nothing here
//! reads the queue or writes to the terminal.

mod events;
mod question;
mod selection;
#[cfg(test)]
mod tests;

use jobq::clock::Millis;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(super) use self::events::{Happened, Notice, Request, Seen, Todo};
pub(super) use self::question::{Question, Verb};
pub(super) use self::selection::{Panel, Selection};
use super::page::{Page, Subject};
use super::signals::Whom;
use super::snapshot::{Row, Snapshot};

/// How long good news stay; bad ones stay until a key is pressed.
const NEWS: Millis = 10_000;

pub(super) struct Model {
    pub(super) root: String,
    pub(super) colours: bool,
    /// Columns and lines.
    pub(super) size: (u16, u16),
    pub(super) snapshot: Option<Snapshot>,
    /// Why the queue could not be looked at the last time.
    pub(super) unavailable: Option<String>,
    pub(super) selection: Selection,
    pub(super) page: Option<Page>,
    pub(super) question: Option<Question>,
    pub(super) notice: Option<Notice>,
    /// What was asked for and has not been answered yet.
    pub(super) unanswered: usize,
    /// Who is to stop as soon as the queue is not in use.
    pub(super) stop: Option<Whom>,
}

impl Model {
    pub(super) fn new(root: String, colours: bool, size: (u16, u16)) -> Self {
        Self {
            root,
            colours,
            size,
            snapshot: None,
            unavailable: None,
            selection: Selection::default(),
            page: None,
            question: None,
            notice: None,
            unanswered: 0,
            stop: None,
        }
    }

    /// What is about the process and its terminal, and not about what is shown, is not for the model.
    pub(super) fn update(&mut self, happened: Happened) -> Option<Todo> {
        match happened {
            Happened::Key(key) => return self.key(key),
            Happened::Resized(width, height) => {
                self.size = (width, height);
                let lines = self.page_lines();
                if let Some(page) = &mut self.page {
                    page.wrap(width, self.colours);
                    page.scroll_by(0, lines);
                }
            }
            Happened::Looked(looked) => self.looked(*looked),
            Happened::Acted(notice) => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.notice = Some(notice);
            }
            Happened::ToldToStop => return self.stop(Whom::Us),
            Happened::ToldToQuit => return Some(Todo::Quit),
            Happened::Continued | Happened::AtRest(_) | Happened::Broken(_) => {}
        }
        None
    }

    fn looked(&mut self, looked: Result<Seen, String>) {
        let Seen { root, snapshot, inspected } = match looked {
            Ok(seen) => seen,
            Err(why) => {
                self.unavailable = Some(why);
                return;
            }
        };
        self.unavailable = None;
        self.root = root;
        self.notice.take_if(|notice| !notice.refused && snapshot.at - notice.at > NEWS);
        self.selection.keep_in(&snapshot);
        self.snapshot = Some(snapshot);
        let lines = self.page_lines();
        if let (Some(inspected), Some(page)) = (inspected, &mut self.page) {
            page.show(inspected, self.size.0, self.colours);
            page.scroll_by(0, lines);
        }
    }

    fn key(&mut self, key: KeyEvent) -> Option<Todo> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                // The second is what terminals send for Ctrl-\, which also means: quit.
                KeyCode::Char('c' | '4') => Some(Todo::Quit),
                KeyCode::Char('l') => Some(Todo::Redraw),
                KeyCode::Char('z') => self.stop(Whom::Foreground),
                _ => None,
            };
        }
        if let Some(question) = self.question.take() {
            return self.answered(question, key.code);
        }
        self.notice = None;
        if self.page.is_some() { self.key_on_page(key.code) } else { self.key_on_lists(key.code) }
    }

    fn key_on_lists(&mut self, code: KeyCode) -> Option<Todo> {
        let snapshot = self.snapshot.as_ref();
        match code {
            KeyCode::Char('q') => return Some(Todo::Quit),
            KeyCode::Char('?' | 'h') => self.page = Some(Page::help(self.size.0, self.colours)),
            KeyCode::Enter | KeyCode::Char('i') => return self.inspect(),
            KeyCode::Char('r' | 'c') => self.wonder(code),
            _ => self.selection.moved(code, snapshot?),
        }
        None
    }

    fn key_on_page(&mut self, code: KeyCode) -> Option<Todo> {
        let lines = self.page_lines();
        let page = self.page.as_mut()?;
        let a_page = isize::try_from(lines.saturating_sub(1).max(1)).unwrap_or(1);
        match code {
            KeyCode::Char('q' | '?' | 'i') | KeyCode::Esc | KeyCode::Enter | KeyCode::Left | KeyCode::Backspace => {
                let was = self.page.take()?.subject;
                return matches!(was, Subject::Job(_)).then_some(Todo::Ask(Request::Inspect(None)));
            }
            KeyCode::Up | KeyCode::Char('k') => page.scroll_by(-1, lines),
            KeyCode::Down | KeyCode::Char('j') => page.scroll_by(1, lines),
            KeyCode::PageUp | KeyCode::Char('b') => page.scroll_by(-a_page, lines),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => page.scroll_by(a_page, lines),
            KeyCode::Home | KeyCode::Char('g') => page.scroll_by(isize::MIN, lines),
            KeyCode::End | KeyCode::Char('G') => page.scroll_by(isize::MAX, lines),
            _ => self.wonder(code),
        }
        None
    }

    /// The job that keys are about: the one on the page, or the one in the lists.
    fn subject(&self) -> Option<&Row> {
        match self.page.as_ref().map(|page| &page.subject) {
            Some(Subject::Job(row)) => Some(row),
            Some(Subject::Help) => None,
            None => self.selected(),
        }
    }

    pub(super) fn selected(&self) -> Option<&Row> {
        self.selection.row(self.snapshot.as_ref()?)
    }

    fn inspect(&mut self) -> Option<Todo> {
        let row = self.selected()?.clone();
        let id = row.id.clone();
        self.page = Some(Page::of(row, self.size.0, self.colours));
        Some(Todo::Ask(Request::Inspect(Some(id))))
    }

    /// Asks the person, if the key is for something that is done to a job; what would be
    /// refused in any case is told at once.
    fn wonder(&mut self, code: KeyCode) {
        let Some((verb, row)) = Verb::of(code).zip(self.subject().cloned()) else { return };
        match verb.refusal(row.status) {
            None => self.question = Some(Question { verb, row }),
            Some(why) => self.notice = Some(Notice { text: why.to_owned(), refused: true, at: 0 }),
        }
    }

    fn answered(&mut self, question: Question, code: KeyCode) -> Option<Todo> {
        if Verb::of(code) == Some(question.verb) {
            // The key is still down; the question stands.
            self.question = Some(question);
            return None;
        }
        matches!(code, KeyCode::Char('y' | 'Y')).then(|| self.ask(question.request()))
    }

    fn ask(&mut self, request: Request) -> Todo {
        self.unanswered += 1;
        Todo::Ask(request)
    }

    /// Once, however often it is said until then.
    fn stop(&mut self, whom: Whom) -> Option<Todo> {
        self.stop.replace(whom).is_none().then_some(Todo::Ask(Request::Rest))
    }

    fn page_lines(&self) -> usize {
        let (above, below) = Page::edges(self.size.1);
        usize::from(self.size.1 - above - below)
    }
}
