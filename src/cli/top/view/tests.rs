//! What is on the screen, at several sizes.

use jobq::Status;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};

use super::*;
use crate::cli::top::model::{Happened, Notice, Request, Seen, Todo};
use crate::cli::top::snapshot::{Row, TypeCounts};

fn row(id: &str, job_type: &str, status: Status, note: &str) -> Row {
    Row {
        id: format!("01K000000000000000000{id}"),
        short_id: format!("01K00{id}"),
        job_type: job_type.to_owned(),
        status,
        tries: "1/3".to_owned(),
        since: 1_000_000 - 12_000,
        percent: None,
        note: note.to_owned(),
    }
}

fn snapshot() -> Snapshot {
    let counts = |name: &str, pending, claimed, failed| TypeCounts {
        name: name.to_owned(),
        pending,
        ready: pending,
        claimed,
        failed: Count::exactly(failed),
        completed: Count { jobs: 100_000, at_least: true },
        p50: Some(3),
        p95: Some(1_200),
        ..TypeCounts::default()
    };
    let mut resize = row("AAAAA", "resize", Status::Claimed, "page 9");
    resize.percent = Some(45);
    Snapshot {
        at: 1_000_000,
        types: vec![counts("create_file", 12, 0, 2), counts("resize", 3, 2, 0)],
        running: vec![resize, row("BBBBB", "resize", Status::Claimed, "")],
        failed: vec![
            row("CCCCC", "create_file", Status::Failed, "io: no space left on device"),
            row(
                "DDDDD",
                "create_file",
                Status::Failed,
                "conflict: out/a.txt has been changed by somebody else since then",
            ),
        ],
        pending: (0..12).map(|n| row(&format!("EEE{n:02}"), "create_file", Status::Pending, "ready")).collect(),
        ended_in_ten_seconds: Count::exactly(42),
        ended_in_a_minute: Count::exactly(210),
    }
}

fn looked(snapshot: Snapshot) -> Happened {
    Happened::Looked(Box::new(Ok(Seen { root: "/home/ada/project".to_owned(), snapshot, inspected: None })))
}

fn model(size: (u16, u16)) -> Model {
    let mut model = Model::new("/home/ada/project".to_owned(), true, size);
    model.update(looked(snapshot()));
    model
}

fn press(model: &mut Model, code: KeyCode) -> Option<Todo> {
    model.update(Happened::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn screen(model: &Model) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(model.size.0, model.size.1)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// Without what is empty at the right.
fn lines(model: &Model) -> Vec<String> {
    let buffer = screen(model);
    let line = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..buffer.area.height).map(line).collect()
}

/// Names by plain SQL may be long, and each the beginning of another.
#[test]
fn a_long_id_takes_the_id_of_no_other_job() {
    for columns in [60, 80, 120] {
        let mut model = model((columns, 24));
        let mut snapshot = snapshot();
        snapshot.failed[0].short_id = "customers-".repeat(6);
        model.update(looked(snapshot));
        let lines = lines(&model);
        assert!(lines.iter().any(|line| line.contains("FAILED        ID  ")), "{columns}: {lines:?}");
        assert!(lines.iter().any(|line| line.contains("01K00DDDDD") && line.contains("confl")), "{columns}: {lines:?}");
        assert!(lines.iter().any(|line| !line.contains("cust") && line.contains("io: no")), "{columns}: {lines:?}");
    }
}

#[test]
fn everything_is_on_an_ordinary_terminal() {
    let expected = [
        " jobq top  /home/ada/project                                       00:16:40 UTC",
        " 2 running  15 pending  2 failed  4.2 jobs/s (210/min)  200000+ done/h",
        "",
        "  TYPE              PENDING  RUNNING  FAILED  DONE 1H  P50  P95",
        "  create_file            12        0       2  100000+  3ms   1s",
        "  resize                  3        2       0  100000+  3ms   1s",
        "",
        "  RUNNING       ID            FOR  TRIES  PROGRESS",
        "> resize        01K00AAAAA    12s    1/3  ████░░░░░░  45% page 9",
        "  resize        01K00BBBBB    12s    1/3",
        "",
        "  FAILED        ID            AGO  TRIES  ERROR",
        "  create_file   01K00CCCCC    12s    1/3  io: no space left on device",
        "  create_file   01K00DDDDD    12s    1/3  conflict: out/a.txt has been changed …",
        "",
        "  PENDING       ID            AGE  TRIES  WHY (the newest 12)",
        "  create_file   01K00EEE00    12s    1/3  ready",
        "  create_file   01K00EEE01    12s    1/3  ready",
        "  create_file   01K00EEE02    12s    1/3  ready",
        "  create_file   01K00EEE03    12s    1/3  ready",
        "  create_file   01K00EEE04    12s    1/3  ready",
        "  create_file   01K00EEE05    12s    1/3  ready",
        " 01K000000000000000000AAAAA  page 9",
        " ↑↓ select  Tab next list  Enter inspect  r retry  c cancel  ? help  q quit",
    ];
    assert_eq!(lines(&model((80, 24))), expected);
}

#[test]
fn a_wide_terminal_has_more_columns() {
    let shown = lines(&model((120, 40))).join("\n");
    for what in ["READY", "CANCELLED 1H", "01K00AAAAA    12s", "200000+ done/h"] {
        assert!(shown.contains(what), "{what}\n{shown}");
    }
    assert!(shown.contains("has been changed by somebody else"), "{shown}");
}

/// Half of one names no job.
#[test]
fn an_id_is_shown_as_it_can_be_typed_or_not_at_all() {
    let mut alike = snapshot();
    alike.failed.iter_mut().for_each(|row| row.short_id.clone_from(&row.id));
    for (columns, has_room) in [(60, false), (80, true), (200, true)] {
        let mut model = model((columns, 24));
        model.update(looked(alike.clone()));
        let shown = lines(&model);
        let failed = shown.iter().find(|line| line.contains("io: no space")).unwrap();
        assert_eq!(failed.contains("  01K000000000000000000CCCCC  "), has_room, "{failed}");
        assert_eq!(failed.contains("01K"), has_room, "{failed}");
    }
}

#[test]
fn a_small_terminal_keeps_what_is_most_important() {
    let shown = lines(&model((40, 10)));
    assert!(shown[0].starts_with(" jobq top  /home/ada"), "{shown:?}");
    assert!(shown.iter().any(|line| line.starts_with("> resize")), "{shown:?}");
    assert!(shown.iter().any(|line| line.contains("io: no space")), "{shown:?}");
    assert!(shown[9].contains("q quit"), "{shown:?}");
    let shown = lines(&model((20, 4)));
    assert!(shown.iter().any(|line| line.starts_with("> resize")), "{shown:?}");
    assert!(shown[3].contains("q quit"), "{shown:?}");
    assert_eq!(lines(&model((1, 1))).len(), 1);
}

/// Whatever is on it, at every size: nothing panics, and the cursor is to be seen
/// wherever there is a line for it.
#[test]
fn any_size_can_be_drawn() {
    let mut many = snapshot();
    many.failed = vec![row("F", &"日本".repeat(90), Status::Failed, &"長い ".repeat(200)); 100];
    many.types =
        (0..50).map(|n| TypeCounts { name: format!("type {n}"), pending: i64::MAX, ..TypeCounts::default() }).collect();
    many.types[0].paused = Some("paused until then".to_owned());
    for size in
        (0..=10).chain([23, 49, 55, 70, 100, 200]).flat_map(|w| (0..=9).chain([14, 24, 60]).map(move |h| (w, h)))
    {
        let mut model = model(size);
        for code in [KeyCode::Tab, KeyCode::End, KeyCode::Tab, KeyCode::End] {
            screen(&model);
            press(&mut model, code);
        }
        let shown = lines(&model);
        let (width, height) = size;
        assert!(width == 0 || height == 0 || shown.iter().any(|line| line.starts_with('>')), "{size:?}: {shown:?}");
        press(&mut model, KeyCode::Char('c'));
        screen(&model);
        press(&mut model, KeyCode::Esc);
        model.update(looked(many.clone()));
        screen(&model);
        model.update(Happened::Looked(Box::new(Err("gone".to_owned()))));
        for code in [KeyCode::Char('?'), KeyCode::End, KeyCode::Esc, KeyCode::Enter] {
            press(&mut model, code);
            screen(&model);
        }
        model.update(looked(Snapshot::default()));
        press(&mut model, KeyCode::Esc);
        screen(&model);
    }
}

#[test]
fn the_last_line_of_a_page_can_be_scrolled_to() {
    for height in 1..30 {
        let mut model = model((60, height));
        press(&mut model, KeyCode::Char('?'));
        press(&mut model, KeyCode::End);
        let shown = lines(&model);
        assert!(shown.iter().any(|line| line == " Looking changes nothing."), "{height}: {shown:?}");
    }
}

#[test]
fn colours_are_those_of_the_status_and_none_if_none_are_wanted() {
    let mut model = model((80, 24));
    let buffer = screen(&model);
    // In this order: a running job, a failed one, a pending one.
    let colours = [9, 12, 16].map(|y| buffer[(2, y)].fg);
    assert_eq!(colours, [Color::Indexed(6), Color::Indexed(1), Color::Indexed(3)]);
    assert!(buffer[(2, 8)].modifier.contains(Modifier::REVERSED), "the selected one");
    assert!(!buffer[(2, 9)].modifier.contains(Modifier::REVERSED));
    model.colours = false;
    let buffer = screen(&model);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(buffer[(2, 8)].modifier.contains(Modifier::REVERSED), "that is no colour");
}

#[test]
fn an_empty_queue_says_what_to_do_next() {
    let mut model = model((80, 24));
    model.update(looked(Snapshot::default()));
    let shown = lines(&model).join("\n");
    assert!(shown.contains("no jobs yet") && shown.contains("jobq enqueue create_file"), "{shown}");
}

#[test]
fn control_characters_are_not_drawn() {
    let mut model = model((80, 24));
    let text = "\u{1b}[31mred\u{7}\r\n";
    model.notice = Some(Notice { text: text.to_owned(), refused: true, at: 0 });
    let mut bad = snapshot();
    bad.running[0].id = text.to_owned();
    model.update(looked(bad));
    let shown = lines(&model).join("");
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    assert!(shown.contains("\u{fffd}[31mred"), "{shown:?}");
}

#[test]
fn a_question_trouble_and_answers_are_told() {
    let mut model = model((80, 24));
    let said = |model: &Model| lines(model)[22].clone();
    press(&mut model, KeyCode::Char('c'));
    assert_eq!(said(&model), " cancel the running resize 01K000000000000000000AAAAA? y/N");
    assert_eq!(press(&mut model, KeyCode::Char('n')), None);
    assert_eq!(said(&model), " 01K000000000000000000AAAAA  page 9");
    press(&mut model, KeyCode::Char('c'));
    model.update(Happened::Resized(30, 24));
    assert_eq!(said(&model), " cancel the running resi…? y/N", "the answers are there wherever there is room");
    model.update(Happened::Resized(80, 24));
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('r'));
    assert_eq!(said(&model), " a running job cannot be retried; c asks it to stop", "nobody is asked in vain");
    press(&mut model, KeyCode::Char('c'));
    let id = "01K000000000000000000AAAAA".to_owned();
    assert_eq!(press(&mut model, KeyCode::Char('y')), Some(Todo::Ask(Request::Cancel(id))));
    assert_eq!(said(&model), " working …");
    model.update(Happened::Acted(Notice { text: "job X cannot be cancelled".to_owned(), refused: true, at: 0 }));
    assert_eq!(said(&model), " job X cannot be cancelled");
    model.update(looked(snapshot()));
    assert_eq!(said(&model), " job X cannot be cancelled", "a refusal stays until a key is pressed");
    press(&mut model, KeyCode::Down);
    model.update(Happened::Looked(Box::new(Err("the disk is on fire".to_owned()))));
    assert_eq!(said(&model), " cannot read the queue: the disk is on fire");
    assert!(lines(&model)[9].starts_with("> resize"), "what was known is still there");
    model.update(Happened::Acted(Notice { text: "refused".to_owned(), refused: true, at: 0 }));
    assert_eq!(said(&model), " cannot read the queue: the disk is on fire; refused", "one does not hide the other");
}

/// What went wrong is more important than what waits.
#[test]
fn how_many_of_a_type_have_failed_is_shown_on_any_terminal() {
    for columns in 16..=200 {
        let shown = lines(&model((columns, 24)));
        let head = shown.iter().position(|line| line.starts_with("  TYPE")).unwrap();
        assert!(shown[head].contains("FAILED"), "{columns}: {shown:?}");
        let end = shown[head].find("FAILED").unwrap() + 6;
        assert_eq!(shown[head + 1].chars().nth(end - 1), Some('2'), "{columns}: {shown:?}");
    }
}
