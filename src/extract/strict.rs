//! Nothing that is missing goes unnoticed. The engine's own strictness is about
//! values that are used directly; here are those within lists and maps, and those
//! that filters and tests are given.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error as JinjaError, ErrorKind as JinjaKind, State, Value, filters, tests};

use super::filters::{join, to_json};

/// The tests whose point is that something may be missing.
const ABOUT_MISSING: [&str; 3] = ["defined", "undefined", "none"];

/// Makes all filters and tests refuse what is missing, but for `default` and the
/// tests that ask for it.
pub(super) fn make_strict(environment: &mut Environment<'_>) {
    // In debug mode they print the insides of the engine, not something to ask anybody.
    environment.remove_global("debug");
    environment.remove_filter("pprint");
    environment.set_formatter(|out, state, value| {
        complete(value)?;
        minijinja::escape_formatter(out, state, value)
    });
    for (name, filter) in all_filters() {
        environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            check(name, &args)?;
            filter.call(state, &args)
        });
    }
    for (name, test) in all_tests() {
        environment.add_test(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            args.iter().try_for_each(complete)?;
            Ok(test.call(state, &args)?.is_true())
        });
    }
}

/// Fails if something in the value is missing.
pub(super) fn complete(value: &Value) -> Result<(), JinjaError> {
    given(value)?;
    match value.kind() {
        ValueKind::Map => value.try_iter()?.try_for_each(|key| complete(&value.get_item(&key)?)),
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.try_for_each(|item| complete(&item)),
        _ => Ok(()),
    }
}

fn given(value: &Value) -> Result<(), JinjaError> {
    if value.is_undefined() { Err(JinjaKind::UndefinedError.into()) } else { Ok(()) }
}

/// What a filter was given: its input, with all that is in it, its arguments, and the
/// attributes by which it looks at the input.
fn check(name: &str, args: &[Value]) -> Result<(), JinjaError> {
    let Some((input, rest)) = args.split_first() else { return Ok(()) };
    let first = rest.first().and_then(Value::as_str);
    let about_missing = match name {
        // `… | map('default', '-')`, `… | select('defined')`: the missing ones are what it is for.
        "map" => matches!(first, Some("default" | "d")),
        "select" | "reject" => first.is_some_and(|test| ABOUT_MISSING.contains(&test)),
        _ => false,
    };
    if about_missing {
        given(input)?;
    } else {
        complete(input)?;
    }
    rest.iter().try_for_each(complete)?;
    let (positional, options): (&[Value], Kwargs) = from_args(rest)?;
    let attribute = match name {
        // With a test, that one decides about what is missing.
        "selectattr" | "rejectattr" if positional.len() == 1 => positional[0].as_str(),
        "groupby" if !options.has("default") => positional.first().and_then(Value::as_str),
        _ => None,
    };
    let named: Option<Value> = options.get("attribute").unwrap_or(None);
    let named = named.filter(|_| matches!(name, "sort" | "sum" | "unique" | "min" | "max" | "groupby"));
    let named = named.filter(|_| !options.has("default"));
    let Some(attributes) = attribute.or(named.as_ref().and_then(Value::as_str)) else { return Ok(()) };
    for item in input.try_iter()? {
        for path in attributes.split(',').map(str::trim) {
            given(&at(&item, path)?)?;
        }
    }
    Ok(())
}

/// The value at `owner.names.0`.
fn at(value: &Value, path: &str) -> Result<Value, JinjaError> {
    path.split('.').try_fold(value.clone(), |value, part| match part.parse::<usize>() {
        Ok(index) => value.get_item_by_index(index),
        Err(_) => value.get_attr(part),
    })
}

/// Those of the engine, with our own in place of some. A filter that it gets in a
/// later version is not strict before it is here.
fn all_filters() -> Vec<(&'static str, Value)> {
    macro_rules! of {
        ($($name:literal $filter:expr;)*) => { vec![$(($name, Value::from_function($filter))),*] };
    }
    of! {
        "safe" filters::safe; "escape" filters::escape; "e" filters::escape;
        "lower" filters::lower; "upper" filters::upper; "title" filters::title;
        "capitalize" filters::capitalize; "replace" filters::replace; "length" filters::length;
        "count" filters::length; "dictsort" filters::dictsort; "items" filters::items;
        "reverse" filters::reverse; "trim" filters::trim; "join" join; "split" filters::split;
        "lines" filters::lines; "round" filters::round; "abs" filters::abs; "int" filters::int;
        "float" filters::float; "attr" filters::attr; "first" filters::first; "last" filters::last;
        "min" filters::min; "max" filters::max; "sort" filters::sort; "list" filters::list;
        "string" filters::string; "bool" filters::bool; "batch" filters::batch; "slice" filters::slice;
        "sum" filters::sum; "indent" filters::indent; "select" filters::select;
        "reject" filters::reject; "selectattr" filters::selectattr; "rejectattr" filters::rejectattr;
        "map" filters::map; "groupby" filters::groupby; "unique" filters::unique;
        "chain" filters::chain; "zip" filters::zip; "format" filters::format; "tojson" to_json;
    }
}

/// All but those of [`ABOUT_MISSING`].
fn all_tests() -> Vec<(&'static str, Value)> {
    macro_rules! of {
        ($($name:literal $test:expr;)*) => { vec![$(($name, Value::from_function($test))),*] };
    }
    of! {
        "safe" tests::is_safe; "escaped" tests::is_safe; "boolean" tests::is_boolean; "odd" tests::is_odd;
        "even" tests::is_even; "divisibleby" tests::is_divisibleby; "number" tests::is_number;
        "integer" tests::is_integer; "int" tests::is_integer; "float" tests::is_float;
        "string" tests::is_string; "sequence" tests::is_sequence; "iterable" tests::is_iterable;
        "mapping" tests::is_mapping; "startingwith" tests::is_startingwith;
        "endingwith" tests::is_endingwith; "lower" tests::is_lower; "upper" tests::is_upper;
        "sameas" tests::is_sameas; "eq" tests::is_eq; "equalto" tests::is_eq; "==" tests::is_eq;
        "ne" tests::is_ne; "!=" tests::is_ne; "lt" tests::is_lt; "lessthan" tests::is_lt; "<" tests::is_lt;
        "le" tests::is_le; "<=" tests::is_le; "gt" tests::is_gt; "greaterthan" tests::is_gt; ">" tests::is_gt;
        "ge" tests::is_ge; ">=" tests::is_ge; "in" tests::is_in; "true" tests::is_true;
        "false" tests::is_false; "filter" tests::is_filter; "test" tests::is_test;
    }
}
