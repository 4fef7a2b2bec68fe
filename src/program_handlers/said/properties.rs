//! Whatever a program says, in whatever pieces it comes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::handler::Run;
use crate::properties::cases;
use crate::queue::Queue;
use crate::store::Lease;

/// The context of a job that is nobody's: what is said at once comes to nothing. It is
/// the same for all of them, because nothing in it changes.
fn context() -> &'static Context {
    static CONTEXT: OnceLock<(Context, tempfile::TempDir)> = OnceLock::new();
    let of = |folder: tempfile::TempDir| (made(folder.path()), folder);
    &CONTEXT.get_or_init(|| of(tempfile::tempdir().unwrap())).0
}

fn made(folder: &std::path::Path) -> Context {
    let queue = Arc::new(Queue::init(folder).unwrap());
    let id = queue.enqueue(NewJob::raw("t", "{}")).unwrap().id;
    let job = queue.get(&id).unwrap();
    let run = Arc::new(Run::new(Lease { id, seq: job.seq, token: 1 }));
    let files = Arc::new(crate::effects::Files::open(folder, &folder.join(".jobq"), "owner").unwrap());
    Context::of(&job, run, queue, files, None, Arc::new(AtomicBool::new(false)))
}

/// A line and what it declares. Nothing of it can be cut off without notice.
fn line() -> impl Strategy<Value = (String, Option<Declared>)> {
    let name = || "[a-zé]{1,6}";
    prop_oneof![
        name().prop_map(|path| (format!("{{\"remove\":\"{path}\"}}"), Some(Declared::Remove { path }))),
        (name(), name()).prop_map(|(path, from)| {
            let line = format!(" {{ \"from\" : \"{from}\", \"put\":\"./x//{path}\" }}\t");
            (line, Some(Declared::Put { path: format!("x/{path}"), from }))
        }),
        name().prop_map(|name| (format!("{{\"enqueue\":{{\"type\":\"t\",\"payload\":{{\"n\":\"{name}\"}}}}}}"), None)),
        "[ \t]{0,3}".prop_map(|blank| (blank, None)),
    ]
}

/// Says it all in these pieces, and then that it is over.
fn heard(ctx: &Context, bytes: &[u8], cuts: &[Index]) -> (Vec<Declared>, usize, Result<(), String>) {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    let mut said = Said::to(ctx);
    let answer = places.windows(2).try_for_each(|piece| said.hear(&bytes[piece[0]..piece[1]]));
    let answer = answer.and_then(|()| said.end_of_line()).map_err(|e| format!("{e:?}"));
    (said.declared, said.follow_ups.len(), answer)
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Any bytes in any pieces: an answer, and the same one.
    #[test]
    fn pieces_do_not_matter(bytes in vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(b'"')], 0..200),
                            cuts in vec(any::<Index>(), 0..6)) {
        let ctx = context();
        prop_assert_eq!(heard(ctx, &bytes, &cuts), heard(ctx, &bytes, &[]));
    }

    /// What was said before a program died counts as far as its lines are whole; of one
    /// that is not, nothing is believed.
    #[test]
    fn a_cut_line_is_never_believed(lines in vec(line(), 0..8), end in any::<Index>(), cuts in vec(any::<Index>(), 0..6)) {
        let ctx = context();
        let all: Vec<u8> = lines.iter().flat_map(|(line, _)| [line.as_bytes(), b"\n"].concat()).collect();
        let end = end.index(all.len() + 1);
        let (declared, _, answer) = heard(ctx, &all[..end], &cuts);
        let mut from = 0;
        let (mut expected, mut is_whole) = (Vec::new(), true);
        for (line, what) in lines {
            if from >= end {
                break;
            }
            // Whoever has said all but the space behind it has said it.
            let said = from + line.trim_end().len();
            let begun = !all[from..end.min(from + line.len())].trim_ascii().is_empty();
            if said <= end { expected.extend(what) } else { is_whole = !begun }
            from += line.len() + 1;
        }
        prop_assert_eq!(declared, expected);
        prop_assert_eq!(answer.is_ok(), is_whole, "{:?}", answer);
    }
}
