//! `jobq init`: makes a folder, a database and a commented file of settings.

use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use jobq::doctor::Doctor;
use jobq::{Error, ErrorKind, QueueOptions, Result, printable};
use rustix::process::geteuid;
use serde_json::json;

use super::args::{Global, InitArgs};
use super::config::{self, Config};
use super::output::Output;
use super::{Answer, Outcome, locate, trust};

/// Version control keeps settings and handlers. The rest belongs to one machine.
const GITIGNORE: &str = "/*\n!/.gitignore\n!/config.toml\n!/handlers/\n";

pub(super) fn run(args: &InitArgs, global: &Global, out: &mut Output) -> Outcome {
    if args.dir.is_some() && (global.db.is_some() || global.root.is_some()) {
        return Err(Error::invalid("DIR", "give either a folder, or --db, or --root").into());
    }
    // Arguments come before the environment.
    let own = match (&args.dir, &global.root) {
        (None, None) => global.db.clone().or_else(locate::from_environment),
        _ => global.db.clone(),
    };
    let root = args.dir.as_deref().or(global.root.as_deref()).unwrap_or(Path::new("."));
    let db = own.clone().unwrap_or_else(|| locate::in_folder(root));
    if own.is_some() {
        locate::refuse_folder(&db, if global.db.is_some() { "--db" } else { "JOBQ_DB" })?;
    }
    let named = own.is_some() || global.root.is_some();
    if !named {
        make_private(root)?;
    }
    let before = Before::of(&db)?;
    let options = QueueOptions::at(&db).create(true).busy_timeout(Config::beside(&db)?.busy_timeout);
    drop(match &global.root {
        Some(root) => options.root(root).open()?,
        None if named => options.open()?,
        None => options.own_root_only().open()?,
    });
    // An application's own database gets no files beside it.
    if own.is_none() {
        write_if_missing(&db.with_file_name("config.toml"), config::TEMPLATE)?;
        write_if_missing(&db.with_file_name(".gitignore"), GITIGNORE)?;
    }
    let shown = printable(&db.strip_prefix(".").unwrap_or(&db).to_string_lossy());
    if out.json {
        out.json(&json!({ "db": db.to_string_lossy(), "created": before != Before::Queue }))?;
    } else if before != Before::Queue {
        match before {
            Before::Nothing => out.line(format_args!("made {shown}"))?,
            _ => out.line(format_args!("added jobq's tables to {shown}"))?,
        }
        // The next command must run in the queue's folder, or name the queue.
        let go = match (args.dir.as_deref().or(global.root.as_deref()), &own) {
            (_, Some(db)) if global.db.is_some() => format!("jobq --db {}", locate::quoted(db)),
            // JOBQ_DB would win over the working folder.
            (Some(folder), _) if locate::from_environment().is_some() => {
                format!("jobq --root {}", locate::quoted(folder))
            }
            (Some(folder), _) if folder != Path::new(".") => format!("cd {} && jobq", locate::quoted(folder)),
            _ => "jobq".to_owned(),
        };
        out.hint(format_args!(
            "queue a job with `{go} enqueue create_file '{{\"path\":\"hello.txt\",\"content\":\"hi\"}}'`"
        ))?;
    } else {
        out.line(format_args!("{shown} is there already"))?;
    }
    Ok(Answer::Yes)
}

/// A folder that was not named by --root is the user's alone, also one from a `git clone` or an earlier version. It is made
/// here, because between a check and the making somebody else could put one in its place.
fn make_private(root: &Path) -> Result<()> {
    let state = root.join(".jobq");
    let at = |e| Error::new(ErrorKind::Io, format!("cannot make {} private: {e}", state.display()));
    std::fs::create_dir_all(root).map_err(at)?;
    match std::fs::DirBuilder::new().mode(0o700).create(&state) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(at),
    }
    let found = state.symlink_metadata().map_err(at)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 != 0 {
        std::fs::set_permissions(&state, Permissions::from_mode(0o700)).map_err(at)?;
    }
    trust::check(&state)
}

/// What the path led to before.
#[derive(PartialEq)]
enum Before {
    Nothing,
    /// An application's database without jobq's tables.
    Database,
    Queue,
}

impl Before {
    fn of(db: &Path) -> Result<Self> {
        let found = match db.metadata() {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(e) => return Err(Error::new(ErrorKind::Io, format!("cannot look at {}: {e}", db.display()))),
        };
        if !found.is_file() {
            return Err(Error::invalid("db", format_args!("{} is not a file", db.display())));
        }
        Ok(if Doctor::at(db).has_tables()? { Self::Queue } else { Self::Database })
    }
}

fn write_if_missing(path: &Path, content: &str) -> Result<()> {
    use std::io::Write as _;
    let at = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", path.display()));
    match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(content.as_bytes()).map_err(at),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(at(e)),
    }
}
