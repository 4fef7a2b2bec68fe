//! Programs as handlers, as they are used: scripts in `.jobq/handlers`, run by the
//! real `jobq worker`, and ended with their job whatever happens.

mod programs {
    mod basics;
    mod bounds;
    mod effects;
    mod harness;
    mod killed;
    mod protocol;
    mod schema;
    mod secrets;
    mod trees;
}
