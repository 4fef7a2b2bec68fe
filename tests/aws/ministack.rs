//! The server: `ministack` in the virtual environment that the test command makes,
//! one for all tests of this program, on a port that the system chooses.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::wire::{Message, send};
use super::world::until;

/// It ends when its standard input does, so with the test program, however that ends.
const SERVE: &str = "
import asyncio, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app
config = Config()
config.bind = ['127.0.0.1:0']
config.errorlog = '-'
asyncio.run(serve(app, config))
";

struct Server {
    address: SocketAddr,
    _stdin: ChildStdin,
}

/// Where the server is. `None`, loudly, if there is none to be had.
pub fn address() -> Option<SocketAddr> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| python().map(|python| start(&python)));
    if server.is_none() {
        crate::skipped::skipped("sync_aws", "there is no ministack (Python 3.10 and PyPI are needed)");
    }
    server.as_ref().map(|server| server.address)
}

/// The interpreter of the environment that `scripts/check.sh` makes, or of one that is named.
fn python() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("JOBQ_TEST_MINISTACK").filter(|path| !path.is_empty()) {
        return Some(named.into());
    }
    let made =
        Path::new(env!("CARGO_BIN_EXE_jobq")).ancestors().map(|folder| folder.join("tools/ministack/bin/python"));
    made.into_iter().find(|python| python.exists())
}

fn start(python: &Path) -> Server {
    let mut command = Command::new(python);
    command.args(["-c", SERVE]).env_clear().env("HOME", std::env::temp_dir()).env("IOT_MTLS_ENABLED", "0");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("ministack starts");
    let stdin = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut before = Vec::new();
    let address = loop {
        let Some(Ok(line)) = said.next() else { panic!("ministack did not start:\n{}", before.join("\n")) };
        if let Some((_, rest)) = line.split_once("Running on http://") {
            break rest.split(' ').next().unwrap().parse().unwrap();
        }
        before.push(line);
    };
    // Read on, or it would wait for someone to.
    std::thread::spawn(move || said.for_each(drop));
    std::thread::spawn(move || child.wait());
    until("ministack is healthy", || is_healthy(address));
    Server { address, _stdin: stdin }
}

fn is_healthy(address: SocketAddr) -> bool {
    let head = vec!["GET /_ministack/health HTTP/1.1".to_owned(), format!("Host: {address}")];
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
        && send(address, &Message { head, body: Vec::new() }).is_ok_and(|answer| answer.status() == 200)
}
