//! What the supervisor needs from the system and no safe call offers. It has one
//! thread and owns nothing when the first two are called; both are what makes
//! them sound.
#![expect(unsafe_code, reason = "fork, and descriptors that belong to nobody")]

use std::io;
use std::os::fd::RawFd;

use rustix::process::Pid;

/// Descriptors that were not meant for this process are closed: whoever started
/// it may have had some that are passed on to every child.
pub(super) fn close_what_was_passed_on() -> io::Result<()> {
    let mut open: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in open.into_iter().filter(|fd| *fd > 2 && rustix_is_open(*fd)) {
        // SAFETY: nothing in this process has been given a descriptor yet but the standard three.
        unsafe { rustix::io::close(fd) };
    }
    Ok(())
}

/// The folder that was read to find them is among them, and closed by now.
fn rustix_is_open(fd: RawFd) -> bool {
    std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok()
}

/// A copy of this process; `None` in the copy.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so the copy finds no lock held by a thread that it does not have.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        pid => {
            Pid::from_raw(pid).filter(|_| pid > 0).map_or_else(|| Err(io::Error::last_os_error()), |pid| Ok(Some(pid)))
        }
    }
}

/// Has a program killed if the process that starts it dies. What the program starts
/// itself is not: for that there is more than one who watches.
pub(super) fn dies_with_its_parent(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made, and no memory is asked for.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // It may have died before that.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        });
    }
}

/// What ends other processes politely is no business of a supervisor: it ends when
/// its worker has. A handler and not "ignore", which its children would inherit.
pub(super) fn outlive_polite_signals() {
    extern "C" fn heard(_signal: libc::c_int) {}
    let heard = heard as extern "C" fn(libc::c_int);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the handler does nothing, which is safe at any time.
        unsafe { libc::signal(signal, heard as libc::sighandler_t) };
    }
}
