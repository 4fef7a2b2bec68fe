//! Every sync in the sources is taken away by some mutant.

use std::path::Path;

use super::bench::Bench;
use super::table::MUTANTS;
use crate::world::walk;

/// Of a file, of a folder, and our own words for them.
const SYNCS: &[&str] = &[
    "fsync(",
    "fdatasync(",
    "syncfs(",
    ".sync_all(",
    ".sync_data(",
    ".sync_folder(",
    ".sync_stage(",
    ".sync_before_commit(",
];

/// Those that nobody takes away.
pub fn without_mutant(bench: &Bench) -> Vec<String> {
    let mut problems = Vec::new();
    let mut count = 0;
    for folder in ["src", "handlers"] {
        for name in walk(&bench.root().join(folder)).iter().filter(|name| is_rust(name)) {
            let file = format!("{folder}/{name}");
            if name.ends_with("tests.rs") {
                continue;
            }
            let text = bench.read(&file);
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for sync in SYNCS {
                for (at, _) in text.match_indices(sync).filter(|(at, _)| is_call(text, *at)) {
                    count += 1;
                    let takes_it = MUTANTS.iter().filter(|mutant| mutant.file == file).any(|mutant| {
                        text.match_indices(mutant.from).any(|(from, _)| (from..from + mutant.from.len()).contains(&at))
                    });
                    if !takes_it {
                        let line = text[..at].lines().count();
                        problems.push(format!("{file}:{line}: this sync has no mutant: a test must miss it"));
                    }
                }
            }
        }
    }
    if count == 0 {
        problems.push("no sync was found in the sources".to_owned());
    }
    problems
}

fn is_rust(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rs")
}

/// Not a comment, and not where it is defined.
fn is_call(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    !line.trim_start().starts_with("//") && !line.ends_with("fn ")
}
