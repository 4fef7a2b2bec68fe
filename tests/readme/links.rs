//! Links between pages, and to files of this repository, lead somewhere.

use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Which the package does not have (`exclude` in Cargo.toml).
const REPOSITORY: [&str; 2] = ["faultlab", "benches/peers"];

#[test]
fn links_lead_somewhere() {
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(at).into();
    for entry in std::fs::read_dir(at("docs")).unwrap() {
        pages.extend(Some(entry.unwrap().path()).filter(|path| path.extension() == Some("md".as_ref())));
    }
    let mut broken = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            if REPOSITORY.iter().any(|name| !at(name).exists() && normal(&target).starts_with(at(name))) {
                continue;
            }
            let there = target.exists() && (anchor.is_empty() || anchors(&target).iter().any(|name| name == anchor));
            if !there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

/// Without `..`, whether it is there or not.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

fn at(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

/// Those that stay within the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://"))
}

/// Headings as they are linked to: small letters, hyphens, nothing else.
fn anchors(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}
