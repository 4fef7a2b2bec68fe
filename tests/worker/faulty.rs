//! The built-in file handlers, failing now and then before they begin.

use std::sync::Mutex;

use jobq::handlers::{CreateFile, CreateFileHandler, CreatedFile, DeleteFile, DeleteFileHandler, DeletedFile};
use jobq::{Context, Handler, HandlerError, Outcome, Registry};

/// These handlers, with those of files failing at random from this seed on.
pub fn registry(registry: Registry, seed: u64) -> Registry {
    registry.with(Create(Dice::of(seed))).with(Delete(Dice::of(seed + 1)))
}

struct Dice(Mutex<fastrand::Rng>);

impl Dice {
    fn of(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// One time in four.
    fn roll(&self) -> Result<(), HandlerError> {
        if self.0.lock().unwrap().u8(..4) == 0 {
            Err(HandlerError::retry("bad luck").with_code("luck"))
        } else {
            Ok(())
        }
    }
}

struct Create(Dice);

impl Handler for Create {
    type Payload = CreateFile;

    fn run(&self, ctx: &Context, job: CreateFile) -> Result<Outcome<CreatedFile>, HandlerError> {
        self.0.roll()?;
        CreateFileHandler.run(ctx, job)
    }
}

struct Delete(Dice);

impl Handler for Delete {
    type Payload = DeleteFile;

    fn run(&self, ctx: &Context, job: DeleteFile) -> Result<Outcome<DeletedFile>, HandlerError> {
        self.0.roll()?;
        DeleteFileHandler.run(ctx, job)
    }
}
