//! The examples, run as their readers would run them. One application in three
//! languages has one outcome; what it leaves is checked from outside.

#[path = "support/skipped.rs"]
mod skipped;

mod examples {
    mod commits;
    mod handlers;
    mod plain_sql;
    mod programs;
}
