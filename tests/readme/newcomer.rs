//! A newcomer has the dependencies that a page prints, and none of jobq's own, which rustdoc takes for granted.

use std::path::Path;
use std::process::Command;

use super::page::page;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Pages with Rust programs, how many, and whose dependencies they begin with.
const PAGES: &[(&str, usize, &str)] =
    &[("README.md", 1, "README.md"), ("docs/tour.md", 2, "README.md"), ("docs/guide.md", 6, "docs/guide.md")];

/// A package for each program, all of them checked at once. In the folder where jobq itself is built, so that SQLite is
/// compiled already; Cargo has let go of its lock there before it runs tests.
#[test]
fn programs_compile_with_the_dependencies_that_are_printed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |path: &str| folder.path().join(path);
    let mut members = Vec::new();
    for (name, programs, begins_with) in PAGES {
        let packages = packages(&page(name), first_dependencies(&page(begins_with)));
        assert_eq!(packages.len(), *programs, "{name} has more programs, or fewer");
        for (number, (dependencies, program)) in packages.into_iter().enumerate() {
            let member = format!("{}-{number}", name.to_lowercase().replace(['/', '.'], "-"));
            // What is only for tests is known only there.
            let of_tests = dependencies.contains("[dev-dependencies]");
            let (file, other) = if of_tests { ("tests/it.rs", "src/lib.rs") } else { ("src/lib.rs", "tests/it.rs") };
            for (file, text) in [(file, program.as_str()), (other, "")] {
                std::fs::create_dir_all(at(&member).join(file).parent().unwrap()).unwrap();
                std::fs::write(at(&member).join(file), text).unwrap();
            }
            let here = dependencies.replace("\"../jobq\"", &format!("{ROOT:?}"));
            assert_ne!(here, dependencies, "{name}: jobq itself is not among\n{dependencies}");
            let manifest = format!("[package]\nname = \"{member}\"\nedition = \"2024\"\n{here}");
            std::fs::write(at(&member).join("Cargo.toml"), manifest).unwrap();
            members.push(member);
        }
    }
    let own = page("Cargo.toml");
    let profile = &own[own.find("[profile.dev]").unwrap()..own.find("[profile.release]").unwrap()];
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n{profile}");
    std::fs::write(at("Cargo.toml"), workspace).unwrap();
    // What it names has been fetched already.
    std::fs::copy(Path::new(ROOT).join("Cargo.lock"), at("Cargo.lock")).unwrap();

    let built = Path::new(env!("CARGO_BIN_EXE_jobq")).ancestors().nth(2).unwrap();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["check", "--offline", "--quiet", "--all-targets"]).current_dir(folder.path());
    let output = cargo.env("CARGO_TARGET_DIR", built).env("CARGO_INCREMENTAL", "0").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Each program with the dependencies that were printed last before it.
fn packages(text: &str, first: String) -> Vec<(String, String)> {
    let mut dependencies = first;
    let mut packages = Vec::new();
    for (language, body) in text.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')) {
        match language {
            "toml" if body.contains("dependencies]") => body.clone_into(&mut dependencies),
            "rust" => packages.push((dependencies.clone(), body.to_owned())),
            _ => assert!(!language.starts_with("rust"), "a program that is not looked at: {language}"),
        }
    }
    packages
}

fn first_dependencies(text: &str) -> String {
    let (_, after) = text.split_once("```toml\n[dependencies]\n").expect("the page prints dependencies");
    format!("[dependencies]\n{}", after.split("```").next().unwrap())
}
