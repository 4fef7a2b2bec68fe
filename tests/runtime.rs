//! Async handlers, and calls that do not block the runtime.

#[path = "runtime/busy.rs"]
mod busy;
#[path = "runtime/calls.rs"]
mod calls;
#[path = "runtime/ended.rs"]
mod ended;
#[path = "runtime/handlers.rs"]
mod handlers;
