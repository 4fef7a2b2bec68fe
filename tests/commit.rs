//! Files and jobs committed as one, through the library: what is accepted, what
//! is refused, and what becomes of it when the disk does not play along. Crashes
//! are in `commit_crash`.

mod support;

mod commit {
    mod accepted;
    mod again;
    mod disk;
    mod expectations;
    mod json;
    mod policy;
    mod refused;
    mod roots;
    mod world;
}
