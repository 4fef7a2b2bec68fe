//! Telling a worker to stop.

use std::sync::{Arc, Mutex, PoisonError};

use super::wake::Bell;

/// Tells a worker to stop. Asked once, it finishes what runs; asked again, it
/// does not wait.
///
/// ```
/// let shutdown = jobq::Shutdown::new();
/// let in_signal_handler = shutdown.clone();
/// in_signal_handler.request();
/// assert_eq!(shutdown.requests(), 1);
/// ```
#[derive(Clone, Default)]
pub struct Shutdown(Arc<Mutex<Asked>>);

#[derive(Default)]
struct Asked {
    times: u32,
    bell: Option<Arc<Bell>>,
}

impl Shutdown {
    /// Not asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the worker to stop.
    pub fn request(&self) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.times = asked.times.saturating_add(1);
        if let Some(bell) = &asked.bell {
            bell.ring();
        }
    }

    /// How often it was asked.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).times
    }

    pub(super) fn rings(&self, bell: Arc<Bell>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bell = Some(bell);
    }
}
