//! Which calls a process makes when nothing goes wrong: the places for faults.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::cases;
use crate::strace::Call;

/// The calls that faults are put at.
pub struct Census {
    pub sites: Vec<Call>,
    /// Calls that most runs make, and that are no sites because they are not at the same
    /// place in most: how many of each name there are too few.
    pub dropped: u64,
    /// All calls of the run that made most of them, those that only look included.
    pub calls: usize,
}

/// Calls of a scenario that may be dropped. More of them are not chance: something comes in
/// another order each time, and faults at it are never tried.
pub const MOST_DROPPED: u64 = 2;

/// By chance no order may have been that of most runs: whose turn it is first goes by random names. Then they are made
/// again; what really differs from run to run does so each time.
const TRIES: usize = 8;

/// Of several runs, side by side as those with faults are, what most of them have in
/// common: names of owners are random, and with them who is looked at first; and a
/// file that was written a moment ago is read once more. One run that makes a call
/// more than the others moves the numbers of all later ones, and takes nothing away.
pub fn steady(runs: usize, census: impl Fn(usize) -> Result<Vec<Call>, String> + Sync) -> Result<Census, String> {
    let numbers: Vec<usize> = (0..runs).collect();
    let once = || -> Result<Census, String> {
        let answers = cases::each(&numbers, |number| census(*number));
        Ok(common(&answers.into_iter().map(|run| run?).collect::<Result<Vec<_>, String>>()?))
    };
    let mut best = once()?;
    for _ in 1..TRIES {
        if best.dropped <= MOST_DROPPED {
            break;
        }
        let another = once()?;
        if another.dropped < best.dropped {
            best = another;
        }
    }
    Ok(best)
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
    let made: HashMap<&str, usize> = usual_numbers(runs);
    let number = |name: &str| sites.iter().filter(|site| site.name == name).count();
    let dropped: usize = made.into_iter().map(|(name, made)| made.saturating_sub(number(name))).sum();
    let calls = runs.iter().map(Vec::len).max().expect("at least one run");
    Census { dropped: dropped as u64, calls, sites }
}

/// How many calls of each name most runs make.
fn usual_numbers(runs: &[Vec<Call>]) -> HashMap<&str, usize> {
    let mut numbers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, run) in runs.iter().enumerate() {
        for call in run {
            numbers.entry(&call.name).or_insert_with(|| vec![0; runs.len()])[at] += 1;
        }
    }
    let usual = |mut numbers: Vec<usize>| {
        numbers.sort_unstable();
        // More than half have as many or more.
        numbers[(numbers.len() - 1) / 2]
    };
    numbers.into_iter().map(|(name, numbers)| (name, usual(numbers))).collect()
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
        assert_eq!(census.dropped, 0, "most runs make three, and all of these are sites");
    }

    #[test]
    fn what_is_never_twice_the_same_is_dropped() {
        let census = common(&[run(&["log", "a"]), run(&["log", "b"]), run(&["log", "c"])]);
        assert_eq!((census.sites.len(), census.dropped), (1, 1));
    }
}
