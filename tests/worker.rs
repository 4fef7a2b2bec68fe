//! The worker, as it is used: real processes that are stopped, killed and
//! starved, on a real disk. The test program starts itself; see `child`.

mod worker {
    mod act;
    mod child;
    mod faulty;
    mod frozen;
    mod harness;
    mod killed;
    mod leftovers;
    mod order;
    mod poison;
    mod sharing;
    mod shutdown;
    mod unruly;
}
