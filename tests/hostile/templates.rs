//! Templates, and the requirements they are filled with.

use serde_json::json;

use super::case::{Case, nested};

const REQUIREMENT: &str = r#"{"id":"r","n":1,"list":[1,2],"text":"x","target":"../x"}"#;

const WRONG: &[(&str, &str)] = &[
    ("", "the prompt would be empty"),
    (" \n", "the prompt would be empty"),
    ("{{", "line 1"),
    ("{{ }}", "line 1"),
    ("{{ nope }}", "`nope`"),
    ("{{ n.nope }}", "nope"),
    ("{{ list[9223372036854775807] }}", "list["),
    ("{% if %}x{% endif %}", "line 1"),
    ("{% for x in list %}", "line 1"),
    ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}x", "steps"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    ("{% include '/etc/passwd' %}", "/etc/passwd"),
    ("{% include 'template' %}", "could not render include"),
    ("{% extends 'x' %}", "does not exist"),
    ("{% import 'x' as y %}{{ y }}", "non-existing template"),
    ("{{ n() }}", "line 1"),
    ("{{ text.__class__ }}", "__class__"),
    ("{{ 1 // 0 }}", "unable to calculate"),
    ("{{ 1 % 0 }}", "unable to calculate"),
    ("{{ 9223372036854775807 ** 9 }}", "unable to calculate"),
    ("{{ 'x' * 100000000000 }}", "too large"),
    ("{{ [1] * 100000000000 }}", "too large"),
    ("{{ '%1000000000s' | format('x') }}", "16 MiB"),
    ("{% for i in range(2000) %}{{ 'x' * 10000 }}{% endfor %}", "16 MiB"),
    ("{{ list | batch(0) }}", "cannot be 0"),
    ("{{ list | slice(0) }}", "cannot be 0"),
    ("{{ text[::0] }}", "step size of 0"),
    ("{{ text | nope }}", "nope"),
    ("{{ text is nope }}", "nope"),
    ("{{ debug() }}", "debug"),
    ("{{ text | pprint }}", "pprint"),
    ("{{ '\u{1b}[31m' ~ nope }}", "nope"),
    ("{{ \u{1b} }}", "line 1"),
];

pub fn cases() -> Vec<Case> {
    let extract = |template: &[u8], requirement: &[u8], word: &str| {
        Case::refused(&["extract", "r.json", "--template", "t.md", "--target", "out/x"], word)
            .file("t.md", template)
            .file("r.json", requirement)
    };
    let fill = |template: &[u8], word: &str| extract(template, REQUIREMENT.as_bytes(), word);
    let mut cases: Vec<Case> = WRONG.iter().map(|(template, word)| fill(template.as_bytes(), word)).collect();
    let many = |begin: &str, part: &str, end: &str| begin.to_owned() + &part.repeat(100_000) + end;
    for template in [many("{{ ", "(", ""), many("{{ ", "[", ""), "{% if 1 %}".repeat(20_000)] {
        cases.push(fill(template.as_bytes(), "recursion"));
    }
    // Chains, for which the engine goes a step down its stack for each link.
    for link in [".x", "[0]", "()", "|string", " < 1", " if 1 else 1"] {
        let template = format!("{{{{ nope{} }}}}", link.repeat(20_000));
        cases.push(fill(template.as_bytes(), "template: line 1: "));
    }
    for link in ["-", "not "] {
        cases.push(fill(format!("{{{{ {}nope }}}}", link.repeat(2_000)).as_bytes(), "`nope`"));
    }
    let branches = "{% if 0 %}".to_owned() + &"{% elif 0 %}".repeat(20_000) + "{% endif %}{{ nope }}";
    cases.push(fill(branches.as_bytes(), "`nope`"));
    cases.push(fill(many("{{ text", "|string", " }}").as_bytes(), "is larger than 262144 bytes"));
    cases.push(fill(b"\xff{{ text }}", "UTF-8"));
    let requirements: [(&[u8], &str); 11] = [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b"{}", "id"),
        (b"{\"id\":null}", "id"),
        (b"{\"id\":\"\"}", "id"),
        (b"{\"id\":[\"x\"]}", "id"),
        (b"{\"id\":\"r\",\"n\":1e999}", "is not JSON"),
        (b"{\"id\":\"\xff\"}", "UTF-8"),
        (b"{\"id\":\"\\ud800\"}", "is not JSON"),
    ];
    cases.extend(requirements.iter().map(|(requirement, word)| extract(b"ask {{ id }}", requirement, word)));
    cases.push(extract(b"ask", nested(200_000).as_bytes(), "is not JSON"));
    let targets =
        ["../{{ id }}", "/{{ id }}", "{{ target }}", "{{ '.jobq/' ~ id }}", "{{ nope }}", "{{", "", "a\u{1b}/"];
    cases.extend(targets.map(|target| {
        Case::refused(&["extract", "r.json", "--template", "t.md", "--target", target], "target")
            .file("t.md", "ask")
            .file("r.json", REQUIREMENT)
    }));
    let glob =
        |pattern: &str, word: &str| Case::refused(&["extract", pattern, "--template", "t.md", "--target", "x"], word);
    cases.push(glob("nowhere/*.json", "no file matches").file("t.md", "ask").code(3));
    cases.push(glob("a***b", "is not a glob").file("t.md", "ask"));
    cases.push(glob("r.json", "t.md").file("r.json", json!({"id": 1}).to_string()).code(3));
    cases
}
