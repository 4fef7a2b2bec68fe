//! Templates, and what comes out of them.

use serde_json::json;

use super::*;

fn render(text: &str) -> Result<String> {
    let variables = json!({
        "title": "<b> & \"it's\"",
        "owner": {"name": "Ada", "city": null},
        "items": [{"n": 1}, {}],
        "count": 12_345_678_901_234_567_u64,
    });
    Renderer::parse("template", text)?.render(&variables)
}

#[test]
fn what_is_missing_is_named_wherever_it_is_used() {
    for (text, name) in [
        ("{{ deadline }}", "deadline"),
        ("{{ owner.mail }}", "owner.mail"),
        ("{{ owner.address.city }}", "owner.address"),
        ("{{ owner['mail'] }}", "owner['mail']"),
        ("{{ items[7] }}", "items[7]"),
        ("{{ deadline | upper }}", "deadline"),
        ("{{ deadline | list }}", "deadline"),
        ("{{ deadline | length }}", "deadline"),
        ("{{ deadline | first }}", "deadline"),
        ("{{ owner.mail | sort }}", "owner.mail"),
        ("{{ deadline | tojson }}", "deadline"),
        ("{{ owner.mail | join }}", "owner.mail"),
        ("{{ [owner.name, deadline] }}", "deadline"),
        ("{{ {'a': [deadline]} | tojson }}", "deadline"),
        ("{{ 'until ' ~ deadline }}", "deadline"),
        ("{% if deadline %}x{% endif %}", "deadline"),
        ("{% if owner.mail == 'x' %}x{% endif %}", "owner.mail"),
        ("{% for d in deadline %}x{% endfor %}", "deadline"),
        ("{% for item in items %}{{ item.n }}{% endfor %}", "item.n"),
        ("{% for item in items %}{{ item.n | tojson }}{% endfor %}", "item.n"),
        ("{{ items | map(attribute='n') | join(',') }}", "map(attribute='n')"),
        ("{% set until = deadline %}{{ until }}", "deadline"),
        ("{{ [deadline] | string }}", "deadline"),
        ("{{ [[deadline]] | upper }}", "deadline"),
        ("{{ [deadline] | length }}", "deadline"),
        ("{{ {'a': deadline} | items | list | string }}", "deadline"),
        ("{{ {'a': deadline} | dictsort | string }}", "deadline"),
        ("{{ 'a' | indent(deadline) }}", "deadline"),
        ("{{ items | map(attribute='n') | list | string }}", "map(attribute='n')"),
        ("{{ items | map(attribute='n') | sum }}", "map(attribute='n')"),
        ("{{ items | map(attribute='n') | map('string') | join }}", "map(attribute='n')"),
        ("{{ items | sum(attribute='n') }}", "sum(attribute='n')"),
        ("{{ items | sort(attribute='n') | length }}", "sort(attribute='n')"),
        ("{{ items | unique(attribute='n') | length }}", "unique(attribute='n')"),
        ("{{ items | selectattr('n') | list | length }}", "selectattr('n')"),
        ("{{ items | rejectattr('n') | list | length }}", "rejectattr('n')"),
        ("{{ items | selectattr('n', '==', 1) | list | length }}", "selectattr('n', '==', 1)"),
        ("{% for n, all in items | groupby('n') %}x{% endfor %}", "groupby('n')"),
        ("{% for n, all in items | groupby(attribute='n') %}x{% endfor %}", "groupby(attribute='n')"),
        ("{% if deadline is string %}x{% endif %}", "deadline"),
        ("{% if 1 is eq(deadline) %}x{% endif %}", "deadline"),
        ("{{ [] | first }}", "[] | first"),
    ] {
        let error = render(&format!("one\ntwo {text}")).expect_err(text);
        assert_eq!(error.field(), Some("template"), "{text}");
        let error = error.to_string();
        assert!(error.contains("line 2: the template uses `"), "{text}: {error}");
        let named = error.split('`').nth(1).unwrap();
        assert!(named.contains(name), "{text}: {error}");
        assert!(error.contains("which the requirement does not have"), "{text}: {error}");
    }
}

#[test]
fn what_may_be_missing_is_said_to_be() {
    for (text, result) in [
        ("{{ deadline | default('none') }}", "none"),
        ("{% if deadline is defined %}{{ deadline }}{% else %}open{% endif %}", "open"),
        ("{{ owner.mail | default(owner.name) }}", "Ada"),
        ("{{ owner.city is none }}", "True"),
        ("{{ deadline is none }}", "False"),
        ("{{ [] | first | d('none') }}", "none"),
        ("{{ items | map(attribute='n') | select('defined') | join(',') }}", "1"),
        ("{{ items | map(attribute='n') | map('default', '-') | join(',') }}", "1,-"),
        ("{{ items | map(attribute='n', default='-') | join(',') }}", "1,-"),
        ("{{ items | selectattr('n', 'defined') | map(attribute='n') | sum }}", "1"),
        ("{% for n, all in items | groupby('n', default=0) %}{{ n }},{% endfor %}", "0,1,"),
        ("{{ items | first | attr('n') }} {{ 'x' | upper is upper }} {{ [2, 1] | sort }}", "1 True [1, 2]"),
    ] {
        assert_eq!(render(text).unwrap(), result, "{text}");
    }
}

#[test]
fn prompts_are_text_and_nothing_is_escaped() {
    let title = "<b> & \"it's\"";
    assert_eq!(render("{{ title }}").unwrap(), title);
    assert_eq!(render("{{ title | tojson }}").unwrap(), r#""<b> & \"it's\"""#);
    assert_eq!(render("{{ owner | tojson }}").unwrap(), r#"{"city":null,"name":"Ada"}"#);
    let pretty = "{\n  \"city\": null,\n  \"name\": \"Ada\"\n}";
    assert_eq!(render("{{ owner | tojson(indent=2) }}").unwrap(), pretty);
    assert_eq!(
        render("{{ count }} {{ [1, 'a'] | join(', ') }} {{ 'ab' | join('-') }}").unwrap(),
        "12345678901234567 1, a a-b"
    );
    assert_eq!(render("\u{feff}plain").unwrap(), "plain");
}

#[test]
fn mistakes_of_the_template_have_their_line() {
    for (text, named) in [
        ("{% for item in %}", "syntax error"),
        ("{% if title %}", "syntax error"),
        ("{{ title", "syntax error"),
        ("{% include 'other' %}", "include"),
        ("{{ title | shout }}", "shout"),
        ("{{ shout(title) }}", "shout"),
        ("{{ title | tojson(indnet=2) }}", "indnet"),
        ("{{ count / 0 }}", "count / 0"),
        ("{{ debug() }}", "debug"),
    ] {
        let error = render(&format!("one\n{text}")).unwrap_err().to_string();
        assert!(error.starts_with("template: line 2: ") && error.contains(named), "{text}: {error}");
        assert!(!error.contains("the requirement does not have"), "{text}: {error}");
    }
}

#[test]
fn a_template_without_an_end_is_given_up_and_so_is_one_without_bounds() {
    let endless = "one\n{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    let error = render(endless).unwrap_err().to_string();
    assert!(error.starts_with("template: line 2: it takes more than 20000000 steps"), "{error}");
    let huge = "{% for a in range(100) %}{{ 'x' * 1000000 }}{% endfor %}";
    let error = render(huge).unwrap_err();
    assert!(error.field() == Some("template") && error.to_string().contains("more than 16 MiB"), "{error}");
    assert_eq!(render("{{ 'x' * 10000000 }}").unwrap().len(), 10_000_000);
}

/// The engine goes a step down the stack for each link; that must not be the caller's.
#[test]
fn a_long_chain_does_not_overflow_the_stack() {
    for link in [".x", "[0]", "()", "|string", " if 1 else 1"] {
        let error = render(&format!("{{{{ nope{} }}}}", link.repeat(20_000))).unwrap_err();
        assert_eq!(error.field(), Some("template"), "{link}: {error}");
    }
    assert_eq!(render(&"x".repeat(LARGEST)).unwrap().len(), LARGEST);
    let error = render(&"x".repeat(LARGEST + 1)).unwrap_err().to_string();
    assert!(error.contains("larger than"), "{error}");
}
