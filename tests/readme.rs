//! The README and the guides do what they say: each of their commands and programs is run, in order, in one scratch
//! folder a page. (Rust is compiled by rustdoc, see `lib.rs`.)

mod readme {
    mod links;
    mod page;
    mod unit;
}
