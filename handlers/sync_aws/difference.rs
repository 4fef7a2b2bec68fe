//! What of the given properties is not as it should be.
//!
//! Objects are looked into; a list is one value, because which of its items belongs
//! to which is known only to the resource type. What is not given is left alone.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};

use crate::sha256_hex;

/// The patch that makes the given properties true. One that is not told although
/// it is set (a password) is given again: whether it is the same cannot be known.
pub(super) fn patch(given: &Value, actual: &Value) -> Patch {
    let mut operations = Vec::new();
    compare(given, actual, &PointerBuf::root(), &mut operations);
    Patch(operations)
}

/// Whether something differs that was not to be put right by this patch, of some time
/// ago. What was may still differ: AWS tells some properties never and writes others
/// in its own way.
pub(super) fn has_more(given: &Value, actual: &Value, before: &str) -> bool {
    let before = serde_json::from_str(before).unwrap_or_else(|_| Patch(Vec::new()));
    let is_within = |one: &PointerBuf, other: &PointerBuf| one.starts_with(other) || other.starts_with(one);
    let paths = |patch: &Patch| patch.iter().map(|operation| operation.path().to_buf()).collect::<Vec<_>>();
    let before = paths(&before);
    paths(&patch(given, actual)).iter().any(|path| !before.iter().any(|known| is_within(path, known)))
}

fn compare(given: &Value, actual: &Value, path: &PointerBuf, operations: &mut Vec<PatchOperation>) {
    let (Value::Object(wanted), Value::Object(there)) = (given, actual) else {
        let value = without_nulls(given);
        if !same(&value, actual) {
            operations.push(PatchOperation::Replace(ReplaceOperation { path: path.clone(), value }));
        }
        return;
    };
    for (name, wanted) in wanted {
        let path = path.with_trailing_token(name.as_str());
        match (wanted, there.get(name)) {
            (Value::Null, None | Some(Value::Null)) => {}
            (Value::Null, Some(_)) => operations.push(PatchOperation::Remove(RemoveOperation { path })),
            // An empty list is what AWS does not tell. An empty object may be a choice of its own.
            (Value::Array(wanted), None | Some(Value::Null)) if wanted.is_empty() => {}
            (wanted, None | Some(Value::Null)) => {
                operations.push(PatchOperation::Add(AddOperation { path, value: without_nulls(wanted) }));
            }
            (wanted, Some(there)) => compare(wanted, there, &path, operations),
        }
    }
}

/// 1 and 1.0 are the same to AWS. Two whole numbers are not rounded: long ones could look alike.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

/// As it is sent to AWS, which knows no null.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        // A place in a list is not left out: the others would get other places.
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        _ => value.clone(),
    }
}

/// sha256 of the given properties as they are now: what AWS has made of them, and
/// nothing that was not given.
pub(super) fn fingerprint(given: &Value, actual: &Value) -> String {
    let mut text = String::new();
    write_canonical(&given_part(given, actual), &mut text);
    sha256_hex(text.as_bytes())
}

fn given_part(given: &Value, actual: &Value) -> Value {
    let (Value::Object(given), Value::Object(actual)) = (given, actual) else { return actual.clone() };
    let told = given.iter().filter_map(|(name, given)| Some((name.clone(), given_part(given, actual.get(name)?))));
    Value::Object(told.collect::<Map<_, _>>())
}

/// With sorted keys, in whatever order maps are kept here.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.keys().collect();
            names.sort_unstable();
            out.push('{');
            for name in names {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(&fields[name], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        _ => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operations(given: &Value, actual: &Value) -> Value {
        let patch = patch(given, actual);
        // What is patched is as given, whatever it was.
        let mut patched = actual.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        assert!(super::patch(given, &patched).is_empty(), "{given} on {actual}");
        serde_json::to_value(patch).unwrap()
    }

    #[test]
    fn only_what_is_given_and_differs_is_patched() {
        let actual = json!({"Name": "b", "Arn": "arn:b", "Size": 1, "Deep": {"A": 1, "B": {"C": [1, 2]}, "L": [{"K": 1}]}, "Long": 9_007_199_254_740_993_u64});
        for same in [
            json!({}),
            json!({"Name": "b"}),
            json!({"Size": 1.0}),
            json!({"Deep": {"B": {"C": [1, 2.0]}}}),
            json!({"Gone": null, "Deep": {"Gone": null}}),
            json!({"Deep": {}}),
            json!({"NoList": []}),
            json!({"Deep": {"L": [{"K": 1, "Gone": null}]}}),
        ] {
            assert_eq!(operations(&same, &actual), json!([]), "{same}");
        }
        for (given, patch) in [
            (json!({"Size": 2}), json!([{"op": "replace", "path": "/Size", "value": 2}])),
            (json!({"Size": "1"}), json!([{"op": "replace", "path": "/Size", "value": "1"}])),
            (
                json!({"Long": 9_007_199_254_740_992_u64}),
                json!([{"op": "replace", "path": "/Long", "value": 9_007_199_254_740_992_u64}]),
            ),
            (json!({"New": [{"K": null, "V": 1}]}), json!([{"op": "add", "path": "/New", "value": [{"V": 1}]}])),
            (json!({"NoObject": {}}), json!([{"op": "add", "path": "/NoObject", "value": {}}])),
            (json!({"Deep": {"a~b": 1}}), json!([{"op": "add", "path": "/Deep/a~0b", "value": 1}])),
            (json!({"Size": null}), json!([{"op": "remove", "path": "/Size"}])),
            (json!({"New": {"a/b": 1, "c": null}}), json!([{"op": "add", "path": "/New", "value": {"a/b": 1}}])),
            (json!({"Deep": {"a/b": 1}}), json!([{"op": "add", "path": "/Deep/a~1b", "value": 1}])),
            (json!({"Deep": {"B": {"C": [2, 1]}}}), json!([{"op": "replace", "path": "/Deep/B/C", "value": [2, 1]}])),
            (json!({"Deep": {"B": 1}}), json!([{"op": "replace", "path": "/Deep/B", "value": 1}])),
            (json!({"Name": {"x": null}}), json!([{"op": "replace", "path": "/Name", "value": {}}])),
        ] {
            assert_eq!(operations(&given, &actual), patch, "{given}");
        }
    }

    #[test]
    fn more_than_was_patched_before_is_noticed() {
        let given = json!({"A": 1, "B": {"C": 1, "D": 1}, "Password": "p"});
        let before = patch(&given, &json!({"A": 0, "B": {"C": 1, "D": 1}})).to_string();
        // As given, as AWS writes it, and never told.
        assert!(!has_more(&given, &json!({"A": "one", "B": {"C": 1, "D": 1}}), &before));
        assert!(has_more(&given, &json!({"A": 1, "B": {"C": 1, "D": 2}}), &before));
        // What is below or above what was put right belongs to it.
        assert!(!has_more(&given, &json!({"A": 1}), &patch(&given, &json!({"B": {"C": 0, "D": 1}})).to_string()));
        assert!(!has_more(&given, &json!({"A": 1, "B": {"C": 1}}), &patch(&given, &json!({"A": 1})).to_string()));
    }

    #[test]
    fn what_aws_adds_and_the_order_of_keys_do_not_count_for_the_fingerprint() {
        let given = json!({"B": {"x": 1, "secret": "s"}, "A": [1]});
        let one = fingerprint(&given, &json!({"A": [1], "B": {"x": 1}, "Arn": "arn"}));
        assert_eq!(one, fingerprint(&given, &json!({"Arn": "other", "B": {"y": 2, "x": 1}, "A": [1]})));
        assert_ne!(one, fingerprint(&given, &json!({"A": [1], "B": {"x": 2}})));
        assert_ne!(one, fingerprint(&given, &json!({"A": [1]})));
        assert_eq!(fingerprint(&json!({}), &json!({"A": 1})), crate::sha256_hex(b"{}"));
    }
}
