//! What keys do.

use jobq::Status;

use super::*;

fn row(id: &str, status: Status) -> Row {
    Row {
        id: id.to_owned(),
        short_id: id.to_owned(),
        job_type: "t".to_owned(),
        status,
        tries: "1/3".to_owned(),
        since: 0,
        percent: None,
        note: String::new(),
    }
}

fn rows(ids: &str, status: Status) -> Vec<Row> {
    ids.split_whitespace().map(|id| row(id, status)).collect()
}

fn look(model: &mut Model, running: &str, failed: &str, pending: &str) {
    let snapshot = Snapshot {
        running: rows(running, Status::Claimed),
        failed: rows(failed, Status::Failed),
        pending: rows(pending, Status::Pending),
        ..Snapshot::default()
    };
    model.update(Happened::Looked(Box::new(Ok(Seen { root: String::new(), snapshot, inspected: None }))));
}

fn model() -> Model {
    let mut model = Model::new(String::new(), false, (80, 24));
    look(&mut model, "r1 r2", "f1 f2 f3", "p1");
    model
}

fn press(model: &mut Model, code: KeyCode) -> Option<Todo> {
    model.update(Happened::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn at(model: &Model) -> &str {
    model.selected().map_or("", |row| &row.id)
}

#[test]
fn the_cursor_walks_through_all_lists() {
    let mut model = model();
    let mut seen = vec![at(&model).to_owned()];
    for _ in 0..6 {
        press(&mut model, KeyCode::Down);
        seen.push(at(&model).to_owned());
    }
    assert_eq!(seen, ["r1", "r2", "f1", "f2", "f3", "p1", "p1"]);
    for (code, id) in [
        (KeyCode::Up, "f3"),
        (KeyCode::Home, "f1"),
        (KeyCode::Up, "r2"),
        (KeyCode::Tab, "f1"),
        (KeyCode::End, "f3"),
        (KeyCode::BackTab, "r1"),
        (KeyCode::BackTab, "p1"),
        (KeyCode::Tab, "r1"),
    ] {
        press(&mut model, code);
        assert_eq!(at(&model), id, "{code:?}");
    }
    look(&mut model, "", "", "p1");
    press(&mut model, KeyCode::Tab);
    assert_eq!(at(&model), "p1", "empty lists are left out");
    look(&mut model, "", "", "");
    for code in [KeyCode::Tab, KeyCode::Up, KeyCode::Down, KeyCode::End, KeyCode::Enter, KeyCode::Char('r')] {
        assert_eq!(press(&mut model, code), None);
    }
}

#[test]
fn the_cursor_stays_with_its_job_or_its_place() {
    let mut model = model();
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Down);
    assert_eq!(at(&model), "f2");
    look(&mut model, "r1", "f0 f1 f2 f3", "p1");
    assert_eq!(at(&model), "f2", "a new one above changes nothing");
    look(&mut model, "r1", "f0 f1 f3", "f2 p1");
    assert_eq!(at(&model), "f3", "one that was retried makes place for the next");
    look(&mut model, "r1", "f0", "");
    assert_eq!(at(&model), "f0");
    look(&mut model, "r1", "", "p1");
    assert_eq!(at(&model), "r1");
}

#[test]
fn keys_are_about_the_selected_job() {
    let id = || "f1".to_owned();
    for (key, other, done) in [('r', 'c', Request::Retry(id())), ('c', 'r', Request::Cancel(id()))] {
        let mut model = model();
        press(&mut model, KeyCode::Tab);
        for no in [KeyCode::Char('n'), KeyCode::Enter, KeyCode::Esc, KeyCode::Char(other), KeyCode::Char('q')] {
            assert_eq!(press(&mut model, KeyCode::Char(key)), None, "{key}: that is asked first");
            assert!(model.question.is_some());
            assert_eq!(press(&mut model, no), None, "{no:?}");
            assert!(model.question.is_none());
        }
        press(&mut model, KeyCode::Char(key));
        // What is below the cursor may change while someone thinks.
        look(&mut model, "", "f2", "");
        assert_eq!(press(&mut model, KeyCode::Char('y')), Some(Todo::Ask(done)));
    }
}

#[test]
fn a_key_that_is_held_down_asks_and_does_nothing_more() {
    for key in ['r', 'c'] {
        let mut model = model();
        press(&mut model, KeyCode::Tab);
        for _ in 0..5 {
            assert_eq!(press(&mut model, KeyCode::Char(key)), None);
            assert_eq!(model.question.as_ref().map(|question| question.row.id.as_str()), Some("f1"), "{key}");
            look(&mut model, "", "f2", "");
        }
        assert!(press(&mut model, KeyCode::Char('y')).is_some());
        assert_eq!(press(&mut model, KeyCode::Char('y')), None, "{key}: a yes is for one question");
    }
}

#[test]
fn a_page_is_about_its_job_and_keys_lead_back() {
    let mut model = model();
    press(&mut model, KeyCode::Tab);
    assert_eq!(press(&mut model, KeyCode::Enter), Some(Todo::Ask(Request::Inspect(Some("f1".to_owned())))));
    look(&mut model, "", "f2", "");
    press(&mut model, KeyCode::Char('r'));
    assert_eq!(press(&mut model, KeyCode::Char('y')), Some(Todo::Ask(Request::Retry("f1".to_owned()))));
    press(&mut model, KeyCode::Char('c'));
    assert_eq!(press(&mut model, KeyCode::Char('y')), Some(Todo::Ask(Request::Cancel("f1".to_owned()))));
    assert_eq!(press(&mut model, KeyCode::Char('q')), Some(Todo::Ask(Request::Inspect(None))));
    assert!(model.page.is_none());
    assert_eq!(press(&mut model, KeyCode::Char('?')), None);
    assert_eq!(press(&mut model, KeyCode::Char('r')), None);
    assert!(model.question.is_none(), "the help is about no job");
    assert_eq!(press(&mut model, KeyCode::Esc), None);
    assert_eq!(press(&mut model, KeyCode::Char('q')), Some(Todo::Quit));
}

#[test]
fn a_page_scrolls_from_its_first_line_to_its_last() {
    let mut model = model();
    model.update(Happened::Resized(30, 8));
    press(&mut model, KeyCode::Char('?'));
    let scroll = |model: &Model| model.page.as_ref().unwrap().scroll;
    press(&mut model, KeyCode::Up);
    assert_eq!(scroll(&model), 0);
    press(&mut model, KeyCode::PageDown);
    assert_eq!(scroll(&model), 4, "a line of the last page stays");
    press(&mut model, KeyCode::End);
    let last = scroll(&model);
    assert_eq!(last + 5, model.page.as_ref().unwrap().lines.len());
    press(&mut model, KeyCode::Down);
    assert_eq!(scroll(&model), last);
    model.update(Happened::Resized(200, 60));
    assert_eq!(scroll(&model), 0, "all of it fits now");
}

#[test]
fn control_c_and_signals_quit_from_everywhere() {
    // The second is Ctrl-\ as it is read from a terminal.
    let quit = |key| Happened::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
    for before in [None, Some(KeyCode::Char('?')), Some(KeyCode::Enter), Some(KeyCode::Char('c'))] {
        let mut model = model();
        before.map(|code| press(&mut model, code));
        assert_eq!(model.update(quit('c')), Some(Todo::Quit));
        assert_eq!(model.update(quit('4')), Some(Todo::Quit));
        assert_eq!(model.update(Happened::ToldToQuit), Some(Todo::Quit));
    }
}

#[test]
fn good_news_go_after_a_while() {
    let mut model = model();
    for (refused, gone) in [(false, true), (true, false)] {
        model.update(Happened::Acted(Notice { text: "done".to_owned(), refused, at: -NEWS }));
        look(&mut model, "", "", "");
        assert!(model.notice.is_some(), "not yet");
        model.update(Happened::Acted(Notice { text: "done".to_owned(), refused, at: -NEWS - 1 }));
        look(&mut model, "", "", "");
        assert_eq!(model.notice.is_none(), gone);
    }
}

#[test]
fn what_would_be_refused_is_not_asked() {
    let refused = [
        ('r', Status::Claimed),
        ('r', Status::Pending),
        ('r', Status::Completed),
        ('c', Status::Completed),
        ('c', Status::Cancelled),
    ];
    for key in ['r', 'c'] {
        for status in [Status::Pending, Status::Claimed, Status::Completed, Status::Failed, Status::Cancelled] {
            let mut model = model();
            let snapshot = Snapshot { running: vec![row("x", status)], ..Snapshot::default() };
            model.update(Happened::Looked(Box::new(Ok(Seen { root: String::new(), snapshot, inspected: None }))));
            press(&mut model, KeyCode::Char(key));
            let said_no = model.notice.as_ref().is_some_and(|notice| notice.refused);
            assert_eq!(said_no, refused.contains(&(key, status)), "{key} {status}");
            assert_eq!(model.question.is_some(), !said_no, "{key} {status}");
            assert_eq!(press(&mut model, KeyCode::Char('y')).is_some(), !said_no, "{key} {status}");
        }
    }
}
