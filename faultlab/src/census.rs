//! Which calls a process makes when nothing goes wrong: the places for faults.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::cases;
use crate::strace::Call;

/// The calls that faults are put at.
pub struct Census {
    pub sites: Vec<Call>,
    /// Sites of the fullest run that are not among them, because they are elsewhere in most.
    pub dropped: u64,
    /// All calls of the run that made most of them, those that only look included.
    pub calls: usize,
}

/// Of several runs, side by side as those with faults are, what most of them have in
/// common: names of owners are random, and with them who is looked at first; and a
/// file that was written a moment ago is read once more. One run that makes a call
/// more than the others moves the numbers of all later ones, and takes nothing away.
pub fn steady(runs: usize, census: impl Fn(usize) -> Result<Vec<Call>, String> + Sync) -> Result<Census, String> {
    let numbers: Vec<usize> = (0..runs).collect();
    let answers = cases::each(&numbers, |number| census(*number));
    let runs = answers.into_iter().map(|run| run?).collect::<Result<Vec<_>, String>>()?;
    Ok(common(&runs))
}

fn common(runs: &[Vec<Call>]) -> Census {
    // Of each call by its name and number, the shapes it has had, and how often.
    let mut shapes: HashMap<(&str, usize), BTreeMap<String, usize>> = HashMap::new();
    for call in runs.iter().flatten() {
        *shapes.entry((&call.name, call.nth)).or_default().entry(shape(&call.line)).or_default() += 1;
    }
    let mut usual: HashMap<(&str, usize), &str> = HashMap::new();
    for (call, shapes) in &shapes {
        let (shape, times) = shapes.iter().max_by_key(|(_, times)| **times).expect("it was made");
        if times * 2 > runs.len() {
            usual.insert(*call, shape);
        }
    }
    let is_usual = |call: &&Call| usual.get(&(call.name.as_str(), call.nth)) == Some(&shape(&call.line).as_str());
    let fullest = runs.iter().max_by_key(|run| run.len()).expect("at least one run");
    let dropped = fullest.len() - fullest.iter().filter(is_usual).count();
    // In the order of the run that has most of them; what only others have comes after it.
    let mut order: Vec<&Vec<Call>> = runs.iter().collect();
    order.sort_by_key(|run| std::cmp::Reverse(run.iter().filter(is_usual).count()));
    let mut sites: Vec<Call> = Vec::new();
    let mut taken: HashSet<(&str, usize)> = HashSet::new();
    for call in order.into_iter().flatten().filter(is_usual) {
        if taken.insert((&call.name, call.nth)) {
            sites.push(call.clone());
        }
    }
    Census { sites, dropped: dropped as u64, calls: fullest.len() }
}

/// A call without what differs from run to run: numbers, random names, answers.
pub fn shape(line: &str) -> String {
    let asked = line.rsplit_once(" = ").map_or(line, |(asked, _)| asked);
    let words = asked.split_inclusive(|letter: char| !letter.is_alphanumeric());
    let is_random = |word: &str| {
        let letters = word.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        // A name of ours in capital letters, or one for a temporary folder.
        let long = letters.len() >= 10 && letters.bytes().all(|letter| letter.is_ascii_uppercase());
        long || letters.len() == 6 || letters.contains(|letter: char| letter.is_ascii_digit())
    };
    words.map(|word| if is_random(word) { "#" } else { word }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(names: &[&str]) -> Vec<Call> {
        let call = |(at, name): (usize, &&str)| Call {
            name: "openat".to_owned(),
            nth: at + 1,
            line: format!("openat({name}) = 3"),
        };
        names.iter().enumerate().map(call).collect()
    }

    #[test]
    fn a_run_with_a_call_more_takes_nothing_away() {
        let usual = ["log", "stage", "wake"];
        let census = common(&[run(&usual), run(&["log", "owners", "stage", "wake"]), run(&usual), run(&usual)]);
        let lines: Vec<&str> = census.sites.iter().map(|site| site.line.as_str()).collect();
        assert_eq!(lines, ["openat(log) = 3", "openat(stage) = 3", "openat(wake) = 3"]);
        assert_eq!(census.dropped, 3, "of the fullest run, all but the first are elsewhere in the others");
    }

    #[test]
    fn what_is_never_twice_the_same_is_dropped() {
        let census = common(&[run(&["log", "a"]), run(&["log", "b"]), run(&["log", "c"])]);
        assert_eq!((census.sites.len(), census.dropped), (1, 1));
    }
}
