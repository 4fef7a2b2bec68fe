//! What both benchmarks print with.

use std::time::Instant;

/// Work per second.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn per_second(count: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    count as f64 / start.elapsed().as_secs_f64()
}

/// One line of the table; the ratio is the median of the rounds' ratios.
pub(crate) fn line(name: &str, ours: &[f64], floor: &[f64], goal: f64) {
    let ratios: Vec<f64> = ours.iter().zip(floor).map(|(o, f)| o / f).collect();
    let ratio = median(&ratios);
    let verdict = if ratio >= goal { "" } else { "  below the goal" };
    println!("{name:<44} {:>12.0} {:>12.0} {ratio:>7.2} {goal:>7.2}{verdict}", median(ours), median(floor));
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
