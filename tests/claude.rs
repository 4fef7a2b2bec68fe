//! `claude_extraction` from the queue to the file, with a program that stands in
//! for Claude Code.

mod claude {
    mod answers;
    mod calls;
    mod ends;
    mod failures;
    mod world;
}
