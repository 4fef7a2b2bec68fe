//! `jobq top`: a live view, with keys to retry, cancel and inspect.
//!
//! Three threads send what happens to this one: keys, looks at the queue, signals.

mod looker;
mod model;
mod page;
mod signals;
mod snapshot;
mod style;
mod terminal;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use jobq::{Error, ErrorKind};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::looker::{Looker, root_of};
use self::model::{Happened, Model, Request, Todo};
use self::terminal::Screen;
use super::args::{Global, TopArgs};
use super::ids::Known;
use super::locate::Place;
use super::{Answer, Failure, Outcome};

/// What may wait while the terminal takes nothing.
const UNHEARD: usize = 64;
/// How long to wait for the answer to what was asked for when told to quit.
const LAST_ANSWER: Duration = Duration::from_secs(5);

pub(super) fn run(args: &TopArgs, global: &Global) -> Outcome {
    usable(global)?;
    let place = Place::find(global)?;
    // Now, so that what is wrong with it is an error like that of any command.
    let queue = place.open_as_it_is()?;
    let root = root_of(&queue);
    let colours = anstream::stdout().current_choice() != anstream::ColorChoice::Never;

    let (tell, happened) = sync_channel(UNHEARD);
    let no_signals = |e: io::Error| Error::new(ErrorKind::Internal, format!("cannot listen for signals: {e}"));
    let given_back = Arc::new(AtomicBool::new(true));
    signals::hear(tell.clone(), &given_back).map_err(no_signals)?;
    let screen = Screen::enter(given_back).map_err(no_terminal)?;
    read_keys(tell.clone());
    let (ask, requests) = channel();
    let looker = Looker { place, queue: Some(queue), every: args.interval, inspected: None, known: Known::default() };
    std::thread::spawn(move || {
        let gone = Gone(tell);
        looker.run(&requests, &gone.0);
    });
    show(Model::new(root, colours, size()), screen, &happened, &ask)
}

fn size() -> (u16, u16) {
    ratatui::crossterm::terminal::size().unwrap_or((80, 24))
}

/// Whether there is a terminal, and someone who looks at it.
fn usable(global: &Global) -> Result<(), Error> {
    let why = if global.json {
        "`jobq top` is for people; programs read `jobq stats --json` and `jobq list --json`"
    } else if !io::stdout().is_terminal() {
        "`jobq top` needs a terminal; without one there are `jobq stats` and `jobq list --json`"
    } else if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        "`jobq top` cannot draw on this terminal (TERM=dumb); there are `jobq stats` and `jobq list --json`"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Invalid, why))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn no_terminal(error: io::Error) -> Error {
    let text = format!("`jobq top` cannot use this terminal: {error}; there are `jobq stats` and `jobq list --json`");
    Error::new(ErrorKind::Invalid, text)
}

/// Draws, waits, and does what follows, until the end.
fn show(mut model: Model, mut screen: Screen, happened: &Receiver<Happened>, ask: &Sender<Request>) -> Outcome {
    loop {
        screen.draw(|frame| view::draw(&model, frame))?;
        let Ok(next) = happened.recv() else { return Ok(Answer::Yes) };
        // What has come together is drawn together.
        for next in std::iter::once(next).chain(happened.try_iter()) {
            let next = match next {
                Happened::Broken(why) => return Err(Failure::Queue(Error::new(ErrorKind::Internal, why))),
                // Who ends a process that is stopped ends it at once, and this would be lost.
                Happened::AtRest(_) if model.unanswered > 0 => {
                    let _ = ask.send(Request::Rest);
                    continue;
                }
                Happened::AtRest(_kept) => {
                    if let Some(whom) = model.stop.take() {
                        screen.meanwhile(|| signals::stop(whom))?;
                    }
                    resized()
                }
                // It would be stopped for taking the terminal, with the queue in use.
                Happened::Continued if terminal::is_in_background() => Happened::ToldToStop,
                Happened::Continued => {
                    screen.continued()?;
                    resized()
                }
                next => next,
            };
            match model.update(next) {
                None => {}
                // If nobody hears it, that has been said or will be.
                Some(Todo::Ask(request)) => drop(ask.send(request)),
                Some(Todo::Redraw) => screen.forget()?,
                Some(Todo::Quit) => {
                    drop(screen);
                    wait_for_answers(model.unanswered, happened);
                    return Ok(Answer::Yes);
                }
            }
        }
    }
}

/// Whoever was stopped or in the background was not told of it.
fn resized() -> Happened {
    let (width, height) = size();
    Happened::Resized(width, height)
}

/// What was asked for is not left half-way.
fn wait_for_answers(mut unanswered: usize, happened: &Receiver<Happened>) {
    let until = Instant::now() + LAST_ANSWER;
    while unanswered > 0 {
        match happened.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Happened::Acted(_)) => unanswered -= 1,
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Reading blocks for as long as nobody types, so it has a thread, which ends with
/// the process.
fn read_keys(tell: SyncSender<Happened>) {
    std::thread::spawn(move || {
        let gone = Gone(tell);
        loop {
            let happened = match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Happened::Key(key),
                Ok(Event::Resize(width, height)) => Happened::Resized(width, height),
                Ok(_) => continue,
                Err(error) => Happened::Broken(format!("cannot read the terminal: {error}")),
            };
            let over = matches!(happened, Happened::Broken(_));
            if gone.0.send(happened).is_err() || over {
                return;
            }
        }
    });
}

/// A thread that ends by a panic must not leave a screen on which nothing moves.
struct Gone(SyncSender<Happened>);

impl Drop for Gone {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Happened::Broken("`jobq top` has a bug: see above".to_owned()));
        }
    }
}
