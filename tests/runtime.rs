//! Async handlers, and calls that do not block the runtime.

#[path = "runtime/calls.rs"]
mod calls;
#[path = "runtime/handlers.rs"]
mod handlers;
