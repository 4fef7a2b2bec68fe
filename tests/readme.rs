//! The README and the guides do what they say: each of their commands and programs is run, in order, in one scratch
//! folder a page. (Rust is compiled by rustdoc, see `lib.rs`.)
#![cfg(feature = "cli")]

#[path = "support/skipped.rs"]
mod skipped;

mod readme {
    mod backup;
    mod escapes;
    mod links;
    mod newcomer;
    mod page;
    mod unit;
}
