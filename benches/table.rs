//! The one table: a line as soon as it is known, for people; all of it as JSON
//! lines afterwards, for `report.py`.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

/// What must be so.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    None,
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::None => true,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bound) => format!(">= {bound}"),
            Self::AtMost(bound) => format!("<= {bound}"),
            Self::None => String::new(),
        }
    }
}

pub(crate) struct Table {
    rows: Vec<Value>,
    part: String,
    folders: Vec<TempDir>,
}

impl Table {
    pub(crate) fn new() -> Self {
        println!(
            "{:<52} {:>10} {:>17} {:>10} {:>7} {:>12} {:>8}",
            "", "jobq", "(spread)", "beside", "ratio", "(spread)", "goal"
        );
        Self { rows: Vec::new(), part: String::new(), folders: Vec::new() }
    }

    /// A folder with many files, to be removed when all has been measured: ext4 without a journal looks at every
    /// inode that was freed in the last minutes before it makes a file, and then that is what is measured.
    pub(crate) fn keep(&mut self, folder: TempDir) {
        self.folders.push(folder);
    }

    /// The lines that follow belong together.
    pub(crate) fn part(&mut self, name: &str) {
        name.clone_into(&mut self.part);
        println!("-- {name}");
    }

    /// Ours beside something that was measured in the same rounds. What has to reach the
    /// goal is the median of the rounds' ratios, because machines change their pace.
    pub(crate) fn ratio(&mut self, name: &str, unit: &str, ours: &[f64], beside: &[f64], goal: Goal) {
        let ratios: Vec<f64> = ours.iter().zip(beside).map(|(o, b)| o / b).collect();
        self.row(name, unit, (ours, Some(beside)), &ratios, goal);
    }

    /// A figure by itself.
    pub(crate) fn alone(&mut self, name: &str, unit: &str, values: &[f64], goal: Goal) {
        self.row(name, unit, (values, None), values, goal);
    }

    fn row(&mut self, name: &str, unit: &str, (ours, beside): (&[f64], Option<&[f64]>), judged: &[f64], goal: Goal) {
        let met = goal.is_met(median(judged));
        let ratio = beside.map(|_| median(judged));
        println!(
            "{:<52} {:>10} {:>17} {:>10} {:>7} {:>12} {:>8}{}",
            format!("{name} ({unit})"),
            figure(median(ours)),
            spread(ours),
            beside.map(|b| figure(median(b))).unwrap_or_default(),
            ratio.map(figure).unwrap_or_default(),
            beside.map(|_| spread(judged)).unwrap_or_default(),
            goal.text(),
            if met { "" } else { "  MISSED" },
        );
        self.rows.push(json!({
            "part": self.part, "name": name, "unit": unit, "goal": goal.text(), "met": met,
            "ours": ours, "beside": beside, "median": median(ours), "ratio": ratio,
        }));
    }

    /// One JSON object per line, as in the table.
    pub(crate) fn write(&self, path: &Path) {
        let mut file = std::fs::File::create(path).unwrap();
        for row in &self.rows {
            writeln!(file, "{row}").unwrap();
        }
    }
}

/// Work per second.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn per_second(count: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    count as f64 / start.elapsed().as_secs_f64()
}

pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// The least and the most there was.
fn spread(values: &[f64]) -> String {
    if values.len() < 2 {
        return String::new();
    }
    format!("{}..{}", figure(percentile(values, 0)), figure(percentile(values, 100)))
}

fn figure(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
