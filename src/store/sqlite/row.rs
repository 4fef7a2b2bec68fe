//! Rows of `jobs` as values. Column names and fields stand once, together, so
//! a column can be neither mixed up nor looked up by name on every row.

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::job::Job;
use crate::json::JsonText;
use crate::state::{Gate, Status};

macro_rules! job_columns {
    ($first:ident = $first_name:literal $(, $field:ident = $name:literal)* $(,)?) => {
        /// The columns `job` reads, in its order.
        pub(super) const COLUMNS: &str = concat!($first_name $(, ", ", $name)*);
        /// How many they are; what is read besides begins here.
        pub(super) const COUNT: usize = [$first_name $(, $name)*].len();

        /// A row that begins with [`COLUMNS`].
        pub(super) fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
            let mut next = 0;
            let mut column = || { next += 1; next - 1 };
            Ok(Job {
                $first: read(row, column())?,
                $($field: read(row, column())?,)*
                blocked: None,
            })
        }
    };
}

job_columns! {
    seq = "seq", id = "id", job_type = "type", status = "status", gate = "gate", priority = "priority",
    attempts = "attempts", max_attempts = "max_attempts", token = "token",
    cancel_requested = "cancel_requested", heartbeat = "heartbeat", created_at = "created_at",
    run_at = "run_at", locked_at = "locked_at", heartbeat_at = "heartbeat_at", claimed_at = "claimed_at",
    completed_at = "completed_at", timeout = "timeout", backoff_base = "backoff_base",
    backoff_max = "backoff_max", locked_by = "locked_by", waiting_on = "waiting_on",
    idempotency_key = "idempotency_key", correlation_id = "correlation_id", payload_hash = "payload_hash",
    holds = "holds", last_error = "last_error", progress = "progress", checkpoint = "checkpoint",
    result = "result", outcome = "outcome", payload = "payload",
}

/// The hold keys in a row's `holds`.
pub(super) fn hold_keys(holds: Option<&str>) -> Vec<String> {
    holds.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

macro_rules! text_column {
    ($type:ty) => {
        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str()?.parse().map_err(|_| FromSqlError::InvalidType)
            }
        }

        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }
    };
}

text_column!(Status);
text_column!(Gate);

/// A column that can always be read. Bytes that are not UTF-8 (damaged, or from
/// a careless inserter) must not hide the row they are in, nor the rows beside
/// it. A payload that is no longer text does not match its hash any more, and
/// ends at the claim.
pub(super) trait Column: Sized {
    fn read(value: ValueRef<'_>) -> FromSqlResult<Self>;
}

pub(super) fn read<T: Column>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let value = row.get_ref(index)?;
    T::read(value).map_err(|e| rusqlite::Error::FromSqlConversionFailure(index, value.data_type(), Box::new(e)))
}

impl Column for String {
    fn read(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(Self::from_utf8_lossy(bytes).into_owned()),
            // What stands before a row says of what kind its columns are, and may be damaged as well.
            ValueRef::Integer(number) => Ok(number.to_string()),
            ValueRef::Real(number) => Ok(number.to_string()),
            ValueRef::Null => Err(FromSqlError::InvalidType),
        }
    }
}

impl Column for JsonText {
    fn read(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::read(value).map(Self)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: ValueRef<'_>) -> FromSqlResult<Self> {
        if value == ValueRef::Null { Ok(None) } else { T::read(value).map(Some) }
    }
}

macro_rules! exact_columns {
    ($($type:ty),*) => {
        $(impl Column for $type {
            fn read(value: ValueRef<'_>) -> FromSqlResult<Self> {
                FromSql::column_result(value)
            }
        })*
    };
}

exact_columns!(bool, i32, i64, Status, Gate);

/// Counts: whatever stands there, reading goes on.
impl Column for u32 {
    fn read(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|number| Self::try_from(number.max(0)).unwrap_or(Self::MAX))
    }
}
