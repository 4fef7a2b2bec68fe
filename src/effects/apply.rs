//! Making planned effects visible.

use std::fs::File;
use std::os::fd::AsFd as _;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::check::{Next, Trouble};
use super::error::FileError;
use super::meta::Meta;
use super::plan::clash;
use super::report::report;
use super::rights::take_rights;
use super::sight::copy_hashed;
use super::stage_found::StagedFile;
use super::stage_own::with_rights;
use super::walk::{Spot, Walk};
use super::{Act, Files};
use crate::store::{Applier, ApplyReport, EffectOp, Failure, FileStamp, Lease, PlannedEffect, Precondition};

impl Applier for Files {
    fn apply(&self, lease: &Lease, effects: &[PlannedEffect], afresh: bool) -> ApplyReport {
        let afresh = self.touched.begin(&lease.id) || afresh;
        Job { files: self, lease, effects, afresh }.apply()
    }

    fn sync(&self) -> Result<(), Failure> {
        self.touched.sync(self)
    }
}

/// How often a path that keeps changing between look and change is looked at.
const LOOKS: usize = 3;

struct Job<'a> {
    files: &'a Files,
    lease: &'a Lease,
    effects: &'a [PlannedEffect],
    afresh: bool,
}

impl Job<'_> {
    fn apply(&self) -> ApplyReport {
        // All preconditions before the first change: most conflicts leave nothing behind.
        let checked: Vec<_> = self.effects.iter().map(|effect| self.check(effect)).collect();
        let clash = clash(self.effects).map(|(path, why)| {
            let effect = self.effects.iter().find(|effect| effect.path == path).expect("one of them");
            Trouble::of(effect, FileError::target(path, why))
        });
        let mut next = Vec::new();
        let mut trouble = clash;
        for answer in checked {
            match answer {
                Ok(known) => next.push(Some(known)),
                Err(found) => {
                    next.push(None);
                    // A conflict is for good; what may pass can wait for it.
                    if !matches!(trouble, Some(Trouble::Conflict(_))) {
                        let first = trouble.take();
                        trouble = Some(match (first, found) {
                            (Some(first), Trouble::Later(_)) => first,
                            (_, found) => found,
                        });
                    }
                }
            }
        }
        let mut stamps = Vec::new();
        if trouble.is_none() {
            for (effect, next) in self.effects.iter().zip(&mut next) {
                match self.carry_out(effect, next.take().expect("there was no trouble")) {
                    Ok(stamp) => stamps.push(stamp),
                    Err(found) => {
                        trouble = Some(found);
                        break;
                    }
                }
            }
        }
        match trouble {
            None => ApplyReport::Applied(stamps),
            Some(trouble) => report(self.effects, self.on_disk(&stamps, &next), trouble, self.afresh),
        }
    }

    /// Whether the effect can be applied, with content that is what was recorded.
    fn check(&self, effect: &PlannedEffect) -> Result<Next, Trouble> {
        let next = self.files.check(effect)?;
        if let (Next::Change(_), EffectOp::Put { sha256, size, stage: Some(stage) }) = (&next, &effect.op)
            && !(self.staged_it(stage)
                || self.files.is_whole(stage, sha256, *size).map_err(|e| Trouble::of(effect, e))?)
        {
            return Err(Trouble::unstaged(effect));
        }
        Ok(next)
    }

    /// Whether this very claim has staged a file: its content was hashed as it was written.
    fn staged_it(&self, stage: &str) -> bool {
        stage.contains(&format!("/{}.{}.", self.lease.id, self.lease.token))
    }

    /// What is on disk although the job is not done: what was changed now, and
    /// what an earlier run had changed.
    fn on_disk(&self, stamps: &[FileStamp], next: &[Option<Next>]) -> Vec<(usize, FileStamp)> {
        let mut done = Vec::new();
        for (index, effect) in self.effects.iter().enumerate().filter(|(_, effect)| changes_something(effect)) {
            if let Some(stamp) = stamps.get(index) {
                done.push((index, *stamp));
            } else if let Some(Next::Done(found)) = next[index] {
                // Recorded as applied, so it has to be durable; if its folder cannot
                // be reached it is left for a retry to find.
                if self.in_place(effect).is_ok() {
                    done.push((index, stamp(found)));
                }
            }
        }
        done
    }

    fn carry_out(&self, effect: &PlannedEffect, mut next: Next) -> Result<FileStamp, Trouble> {
        for _ in 0..LOOKS {
            let made = match (next, &effect.op) {
                (Next::Done(Some(_)), EffectOp::Put { .. }) if self.afresh => self.rewrite(effect)?,
                (Next::Done(found), _) => {
                    self.in_place(effect).map_err(|e| Trouble::of(effect, e))?;
                    Some(stamp(found))
                }
                (Next::Change(found), EffectOp::Put { .. }) => self.put(effect, found)?,
                (Next::Change(found), EffectOp::Remove) => self.remove(effect, found)?,
            };
            match made {
                Some(stamp) => return Ok(stamp),
                // The path is not what it was a moment ago.
                None => next = self.files.check(effect)?,
            }
        }
        Err(Trouble::Later(FileError::temporary(&effect.path, "it keeps changing; try again when it has settled")))
    }

    /// Nothing to change; but whoever did it may not have lived to sync it.
    fn in_place(&self, effect: &PlannedEffect) -> Result<(), FileError> {
        let spot = self.files.walk(&effect.path, Walk { make: false, doubt: true })?;
        self.files.remember(spot);
        Ok(())
    }

    /// `None`: the target has changed since it was checked.
    fn put(&self, effect: &PlannedEffect, found: Option<Meta>) -> Result<Option<FileStamp>, Trouble> {
        let EffectOp::Put { size, stage: Some(stage), .. } = &effect.op else { return Err(Trouble::unstaged(effect)) };
        let failed = |doing, errno| Trouble::of(effect, FileError::os(&effect.path, doing, errno));
        let opened = self.files.open_staged(stage, *size).map_err(|e| failed("open its staged content", e))?;
        let staged = opened.ok_or_else(|| Trouble::unstaged(effect))?;
        // Another claim planned this, so another run may have made folders for it.
        let doubt = self.afresh || !self.staged_it(stage);
        let spot = self.files.walk(&effect.path, Walk { make: true, doubt }).map_err(|e| Trouble::of(effect, e))?;
        let replaced = spot.open_file().map_err(|e| Trouble::of(effect, e))?;
        if replaced.as_ref().map(|(_, meta)| *meta) != found {
            return Ok(None);
        }
        let moved = match replaced {
            Some((replaced, _)) => self.replace(&staged, &spot, &replaced),
            None => self.create(&staged, &spot),
        };
        match moved {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            // The folder was removed under us, or the staged file was.
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed("put it in place", errno)),
        }
        self.files.remember(spot);
        self.files.used(stage);
        let meta = Meta::of(&staged.file).map_err(|e| failed("look at it", e))?;
        Ok(Some(stamp(Some(meta))))
    }

    /// Puts a staged file where another one is, with the rights of that one.
    fn replace(&self, staged: &StagedFile<'_>, spot: &Spot<'_>, replaced: &File) -> Result<(), Errno> {
        take_rights(&staged.file, replaced)?;
        self.files.about_to(Act::Replace, spot.path)?;
        with_rights(&staged.folder, |from| rustix::fs::renameat(from, staged.name, &spot.folder, spot.name))
    }

    /// Puts a staged file where nothing is, and nothing else.
    fn create(&self, staged: &StagedFile<'_>, spot: &Spot<'_>) -> Result<(), Errno> {
        let to = spot.folder.as_fd();
        let renamed = self.files.about_to(Act::Create, spot.path).and_then(|()| {
            with_rights(&staged.folder, |from| {
                rustix::fs::renameat_with(from, staged.name, to, spot.name, RenameFlags::NOREPLACE)
            })
        });
        match renamed {
            // The filesystem does not know how. A link is never made over a file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.files.about_to(Act::Link, spot.path)?;
                let from = &*staged.folder;
                with_rights(from, |from| rustix::fs::linkat(from, staged.name, to, spot.name, AtFlags::empty()))?;
                // A name that is left behind is swept with the rest.
                let _ = rustix::fs::unlinkat(from, staged.name, AtFlags::empty());
                Ok(())
            }
            answer => answer,
        }
    }

    fn remove(&self, effect: &PlannedEffect, found: Option<Meta>) -> Result<Option<FileStamp>, Trouble> {
        let walk = Walk { make: false, doubt: self.afresh };
        let spot = self.files.walk(&effect.path, walk).map_err(|e| Trouble::of(effect, e))?;
        if spot.find().map_err(|e| Trouble::of(effect, e))? != found {
            return Ok(None);
        }
        let removed = self
            .files
            .about_to(Act::Unlink, &effect.path)
            .and_then(|()| rustix::fs::unlinkat(&spot.folder, spot.name, AtFlags::empty()));
        match removed {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Trouble::of(effect, FileError::os(&effect.path, "remove it", errno))),
        }
        self.files.remember(spot);
        Ok(Some(FileStamp::default()))
    }

    /// The content is in place, but the sync of its folder has failed: nothing
    /// there can be trusted to be durable. A copy is staged, synced and put over
    /// it, so that the next sync has something new to write.
    fn rewrite(&self, effect: &PlannedEffect) -> Result<Option<FileStamp>, Trouble> {
        let EffectOp::Put { sha256, .. } = &effect.op else { return Ok(None) };
        let wrong = |e| Trouble::of(effect, e);
        let failed = |doing, e: &std::io::Error| Trouble::of(effect, FileError::io(&effect.path, doing, e));
        let spot = self.files.walk(&effect.path, Walk { make: false, doubt: true }).map_err(wrong)?;
        let Some((file, meta)) = spot.open_file().map_err(wrong)? else { return Ok(None) };
        // A name that no earlier copy has, whatever became of it.
        let number = format!("again-{}", ulid::Ulid::generate());
        let mut writer = self.files.stage_as(self.lease, &number).map_err(wrong)?;
        let (copied, _) = copy_hashed(&file, &mut writer).map_err(|e| failed("write it anew", &e))?;
        if copied != *sha256 {
            return Ok(None);
        }
        writer.take_rights(&file).map_err(wrong)?;
        let staged = writer.finish().map_err(wrong)?;
        let fresh = PlannedEffect {
            path: effect.path.clone(),
            op: EffectOp::Put { sha256: copied, size: staged.size, stage: Some(staged.stage.clone()) },
            ..effect.clone()
        };
        let put = self.put(&fresh, Some(meta));
        if !matches!(put, Ok(Some(_))) {
            self.files.forget(&staged.stage);
        }
        put
    }
}

/// Whether an effect, once applied, has changed the disk.
fn changes_something(effect: &PlannedEffect) -> bool {
    match (&effect.op, &effect.precondition) {
        (EffectOp::Put { sha256: new, .. }, Precondition::Sha256(old)) => new != old,
        (EffectOp::Put { .. }, Precondition::Absent) | (EffectOp::Remove, Precondition::Sha256(_)) => true,
        (EffectOp::Remove, Precondition::Absent) => false,
    }
}

/// Zeros for a file that is gone.
fn stamp(meta: Option<Meta>) -> FileStamp {
    meta.map_or_else(FileStamp::default, |meta| FileStamp {
        mtime: meta.stamp.mtime,
        inode: meta.stamp.inode.cast_signed(),
    })
}
