//! Odd names that are only names: each makes a file of just that name, below the root, by a
//! whole job.

use serde_json::json;

use super::run::Seed;
use super::world::World;

#[rustfmt::skip]
const ODD: [&str; 32] = [
    // Nearly upwards, nearly absolute, nearly jobq's own.
    "...", "..a", "a..", ".. ", " ..", "..\\x", "a\\..\\..\\b", "\\etc\\passwd", "C:\\x", "%2e%2e%2fx", "．．／x", "..\u{2215}x",
    ".jobq2", "jobq", ".\u{17f}obq",
    // Two that look the same are two.
    "\u{e9}", "e\u{301}", "K", "\u{212a}", "readme", "README",
    // What shells, terminals and other systems see something in.
    "-rf", "--", "~", "*", "$(id)", "`id`", "a\nb", "\u{1b}[31mred", "\u{202e}txt.exe", "con", "trailing. ",
];

pub fn seeds(world: &World) -> Vec<Seed> {
    let longest = "x".repeat(255);
    let names = ODD.into_iter().chain([longest.as_str()]);
    let queue = |(number, name): (usize, &str)| {
        // Every spelling of the path is the same path.
        let spelling = ["", "./", ".//", "././"][number % 4];
        let payload = json!({"path": format!("{spelling}{name}"), "content": name}).to_string();
        let id = world.json(&["enqueue", "create_file", &payload])[0]["id"].as_str().unwrap().to_owned();
        let makes = Some(name.to_owned());
        Seed { what: format!("{name:?}"), id, status: "completed", word: String::new(), makes }
    };
    let mut seeds: Vec<Seed> = names.enumerate().map(queue).collect();
    seeds.rotate_left(1);
    seeds
}
