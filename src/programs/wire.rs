//! The messages between worker, supervisor and reapers.
//!
//! ```text
//! worker ──link──► supervisor      a run's descriptors; "I am alive"; "kill this reaper"
//! worker ◄channel► reaper          what to run; "it starts now"; "end it"; how it ended
//! supervisor ─guard─► reaper       nothing; when the guard closes, it means "end it"
//! ```
//!
//! A program talks to copies of itself here, so messages have no versions.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// Channel, stdin, stdout, stderr, and the line protocol if the program has one.
const MOST_DESCRIPTORS: usize = 5;

/// A message over the link.
pub(super) enum Message {
    /// A run by its number: its channel and the descriptors of its program.
    Run(u64, Vec<OwnedFd>),
    /// Kill the reaper of this run, because it does not answer.
    Kill(u64),
    Ping,
    /// The worker is gone.
    End,
}

/// A letter and a number.
const MESSAGE: usize = 9;

fn message(letter: u8, number: u64) -> [u8; MESSAGE] {
    let mut bytes = [letter; MESSAGE];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    bytes
}

pub(super) fn send_run(link: impl AsFd, number: u64, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    rustix::net::sendmsg(link, &[IoSlice::new(&message(b'R', number))], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Never waits: a supervisor that does not read has enough pings queued.
pub(super) fn send_ping(link: impl AsFd) {
    let _ = rustix::net::send(link, &message(b'P', 0), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Never waits.
pub(super) fn send_kill(link: impl AsFd, number: u64) {
    let _ = rustix::net::send(link, &message(b'K', number), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

pub(super) fn receive(link: impl AsFd) -> io::Result<Message> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; MESSAGE];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::net::recvmsg(link, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    let [letter, number @ ..] = bytes;
    let number = u64::from_le_bytes(number);
    Ok(match (received.bytes, letter) {
        (0, _) => Message::End,
        (_, b'R') => Message::Run(number, descriptors),
        (_, b'K') => Message::Kill(number),
        _ => Message::Ping,
    })
}

/// The program that a reaper must start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) folder: PathBuf,
    pub(super) command: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Order {
    /// Each field ends with a zero byte. No field can contain one.
    pub(super) fn send(&self, mut channel: impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut field = |text: &OsStr| {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        };
        field(self.folder.as_os_str());
        field(self.command.len().to_string().as_ref());
        self.command.iter().for_each(|argument| field(argument));
        for (name, value) in &self.environment {
            field(name);
            field(value);
        }
        channel.write_all(&u32::try_from(bytes.len()).map_err(io::Error::other)?.to_le_bytes())?;
        channel.write_all(&bytes)
    }

    pub(super) fn receive(mut channel: impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        channel.read_exact(&mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        channel.read_exact(&mut bytes)?;
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "a broken order");
        let mut fields = bytes.strip_suffix(&[0]).ok_or_else(broken)?.split(|byte| *byte == 0);
        let mut next = || fields.next().map(|field| OsString::from_vec(field.to_vec()));
        let folder = next().ok_or_else(broken)?.into();
        let count = next().and_then(|count| count.to_str()?.parse::<usize>().ok()).ok_or_else(broken)?;
        let command = (0..count).map(|_| next()).collect::<Option<Vec<_>>>().ok_or_else(broken)?;
        let mut environment = Vec::new();
        while let Some(name) = next() {
            environment.push((name, next().ok_or_else(broken)?));
        }
        Ok(Self { folder, command, environment })
    }
}

/// A worker's request to end the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndIt {
    /// The time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

impl EndIt {
    pub(super) const SIZE: usize = 8;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX).to_le_bytes()
    }

    pub(super) fn decode(bytes: [u8; Self::SIZE]) -> Self {
        Self { grace: Duration::from_millis(u64::from_le_bytes(bytes)) }
    }
}

/// What a reaper sends just before it starts the program. From then on the program may have done something.
pub(super) const STARTING: [u8; Report::SIZE] = *b"START";

/// A reaper's last message: all processes of the program are dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Exited(i32),
    Killed(i32),
    /// The system refused to start it, with this error number.
    NotStarted(i32),
    /// The reaper cannot enter the program's folder; the error number.
    NoFolder(i32),
}

impl Report {
    pub(super) const SIZE: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        let (kind, number) = match self {
            Self::Exited(code) => (b'X', code),
            Self::Killed(signal) => (b'K', signal),
            Self::NotStarted(errno) => (b'N', errno),
            Self::NoFolder(errno) => (b'D', errno),
        };
        let mut bytes = [kind; Self::SIZE];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let [kind, number @ ..] = bytes;
        let number = i32::from_le_bytes(number);
        match kind {
            b'X' => Some(Self::Exited(number)),
            b'K' => Some(Self::Killed(number)),
            b'N' => Some(Self::NotStarted(number)),
            b'D' => Some(Self::NoFolder(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_given() {
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let order = Order {
            folder: "/some where".into(),
            command: vec![text(b"sh"), text(b""), text(b"a\xff=\n")],
            environment: vec![(text(b"EMPTY"), text(b"")), (text(b"A"), text(b"x=y"))],
        };
        let mut bytes = Vec::new();
        order.send(&mut bytes).unwrap();
        assert_eq!(Order::receive(&bytes[..]).unwrap(), order);
        assert!(Order::receive(&bytes[..bytes.len() - 1]).is_err(), "cut short");
    }

    #[test]
    fn reports_and_requests_arrive_as_they_were_given() {
        for report in [Report::Exited(0), Report::Killed(9), Report::NotStarted(2), Report::NoFolder(-1)] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        let end = EndIt { grace: Duration::from_millis(1234) };
        assert_eq!(EndIt::decode(end.encode()), end);
    }
}
