//! `[handlers.<type>]`: what is set for the jobs of one type, whoever runs them.

use std::collections::BTreeMap;

use jobq::{Error, Result};
use serde::Deserialize;

/// The tables by type.
pub(super) type Handlers = BTreeMap<String, HandlerTable>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlerTable {
    /// How many may run at once, counted over all workers.
    pub(crate) concurrency: Option<u32>,
}

pub(super) fn check(handlers: &Handlers) -> Result<()> {
    for (name, table) in handlers {
        if table.concurrency == Some(0) {
            return Err(Error::invalid(format!("handlers.{name}.concurrency"), "must be at least 1"));
        }
    }
    Ok(())
}

/// The limits among the settings.
pub(super) fn limits(handlers: &Handlers) -> BTreeMap<String, u32> {
    handlers.iter().filter_map(|(name, table)| Some((name.clone(), table.concurrency?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn a_type_may_have_a_limit() {
        let text =
            "[handlers.send_mail]\nconcurrency = 2\n[handlers.\"odd name\"]\n[handlers.create_file]\nconcurrency = 1";
        let limits = Config::parse(text).unwrap().limits();
        let limits: Vec<_> = limits.iter().map(|(name, limit)| (name.as_str(), *limit)).collect();
        assert_eq!(limits, [("create_file", 1), ("send_mail", 2)]);
    }

    #[test]
    fn what_cannot_be_a_limit_is_refused() {
        for (text, field) in [
            ("[handlers.x]\nconcurrency = 0", "handlers.x.concurrency"),
            ("[handlers.x]\nconcurrency = -1", "config"),
            ("[handlers.x]\nconcurrency = \"two\"", "config"),
            ("[handlers.x]\nconcurency = 2", "config"),
            ("[handlers]\nconcurrency = 2", "config"),
        ] {
            assert_eq!(Config::parse(text).err().unwrap().field(), Some(field), "{text}");
        }
    }
}
