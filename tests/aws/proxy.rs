//! Between a worker and the server: counts calls, breaks them as told, and adds
//! what the server lacks and the real AWS has: a client token that comes again is
//! answered with the request that is there, and requests take their time.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::wire::{Message, answer, send};
use super::world::PATIENCE;

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refused with this HTTP status and error code; the server hears nothing of it.
    Refuse(u16, &'static str),
    /// The connection is closed before the server hears of it.
    DropBefore,
    /// The server has done it, and nobody is told.
    DropAfter,
    /// The same two, but only when somebody says so: until then the caller waits.
    HoldBefore,
    HoldAfter,
    /// Nothing is wrong, but it is answered only when somebody says so.
    PauseAfter,
    /// Nothing is wrong with this one.
    None,
    /// Accepted, and failed later with this code.
    Fail(&'static str),
    /// The same, but what was asked for is there, by the name that the server has given it.
    FailHalfway(&'static str),
    /// Answered with these words; the server hears nothing of it.
    Say(u16, &'static str),
}

/// A call that came in.
#[derive(Clone, Debug)]
pub struct Call {
    pub action: String,
    pub body: Value,
    /// Whose key it was signed with.
    pub account: String,
}

impl Call {
    pub fn client_token(&self) -> Option<&str> {
        self.body["ClientToken"].as_str()
    }
}

#[derive(Default)]
struct Inner {
    faults: Vec<(&'static str, Fault)>,
    calls: Vec<Call>,
    /// How many calls wait for somebody to let them go.
    held: usize,
    let_go: bool,
    /// How often a new request is seen in progress.
    looks: u32,
    /// What was asked for with each client token, and the request that came of it.
    tokens: HashMap<String, (Value, String)>,
    requests: HashMap<String, Request>,
}

struct Request {
    looks_left: u32,
    end: Value,
}

struct Shared {
    server: SocketAddr,
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// Its thread lives as long as the test program.
#[derive(Clone)]
pub struct Proxy {
    pub url: String,
    shared: Arc<Shared>,
}

impl Proxy {
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { server, inner: Mutex::default(), changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Self { url, shared }
    }

    /// The next call of this action fares like this; more of them one after the other.
    pub fn breaks(&self, action: &'static str, fault: Fault) {
        self.shared.lock().faults.push((action, fault));
    }

    /// Requests are seen in progress this often before they are done.
    pub fn takes_its_time(&self, looks: u32) {
        self.shared.lock().looks = looks;
    }

    /// AWS no longer knows of any request.
    pub fn forgets_requests(&self) {
        let mut inner = self.shared.lock();
        inner.requests.clear();
        inner.tokens.clear();
    }

    /// Waits until a call is held.
    #[track_caller]
    pub fn wait_for_held(&self) {
        self.wait_for_many_held(1);
    }

    /// Waits until so many calls are held.
    #[track_caller]
    pub fn wait_for_many_held(&self, number: usize) {
        let inner = self.shared.lock();
        let too_few = |inner: &mut Inner| inner.held < number;
        let (inner, waited) = self.shared.changed.wait_timeout_while(inner, PATIENCE, too_few).unwrap();
        assert!(!waited.timed_out(), "{} calls were held: {:?}", inner.held, inner.calls);
    }

    /// What is held goes on to its end, now and from here on.
    pub fn let_go(&self) {
        self.shared.lock().let_go = true;
        self.shared.changed.notify_all();
    }

    pub fn calls(&self) -> Vec<Call> {
        self.shared.lock().calls.clone()
    }

    pub fn actions(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.action).collect()
    }

    pub fn count(&self, action: &str) -> usize {
        self.actions().iter().filter(|called| *called == action).count()
    }

    /// The client tokens of calls that change something, each once.
    pub fn distinct_tokens(&self) -> usize {
        let calls = self.calls();
        let mut tokens: Vec<_> = calls.iter().filter_map(Call::client_token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens.len()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// One call; an error is one of the connection, which is nobody's business here.
    fn serve(&self, stream: &TcpStream) {
        let Ok(request) = Message::read(stream) else { return };
        let action = request.header("x-amz-target").and_then(|target| target.rsplit('.').next()).unwrap_or("?");
        let body = request.json();
        let fault = {
            let mut inner = self.lock();
            let signed = request.header("authorization").and_then(|words| words.split_once("Credential="));
            let account = signed.and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default().to_owned();
            inner.calls.push(Call { action: action.to_owned(), body: body.clone(), account });
            let at = inner.faults.iter().position(|(broken, _)| *broken == action);
            at.map(|at| inner.faults.remove(at).1)
        };
        let (status, said) = match fault {
            Some(Fault::Refuse(status, code)) => (status, refusal(code)),
            Some(Fault::DropBefore) => return,
            Some(Fault::HoldBefore) => return self.hold(),
            Some(Fault::Fail(code)) => self.failing(&body, action, code),
            Some(Fault::FailHalfway(code)) => {
                let (_, done) = self.forward(&request);
                let mut end = done["ProgressEvent"].clone();
                end["OperationStatus"] = "FAILED".into();
                end["ErrorCode"] = code.into();
                self.accept(body["ClientToken"].as_str().unwrap(), &body, end)
            }
            Some(Fault::Say(status, words)) => (status, serde_json::from_str(words).unwrap()),
            Some(Fault::DropAfter) => return drop(self.handle(action, &request, &body)),
            Some(Fault::HoldAfter) => {
                let _done = self.handle(action, &request, &body);
                return self.hold();
            }
            Some(Fault::PauseAfter) => {
                let done = self.handle(action, &request, &body);
                self.hold();
                done
            }
            Some(Fault::None) | None => self.handle(action, &request, &body),
        };
        let _ = answer(stream, status, &said);
    }

    fn hold(&self) {
        let mut inner = self.lock();
        inner.held += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(inner, |inner| !inner.let_go).unwrap());
    }

    fn handle(&self, action: &str, request: &Message, body: &Value) -> (u16, Value) {
        if action == "GetResourceRequestStatus" {
            return self.status(body["RequestToken"].as_str().unwrap_or_default());
        }
        let Some(token) = body["ClientToken"].as_str() else {
            return self.forward(request);
        };
        let known = self.lock().tokens.get(token).cloned();
        match known {
            Some((asked, _)) if asked != *body => (400, refusal("ClientTokenConflictException")),
            Some((_, request)) => self.status(&request),
            None => {
                let (status, said) = self.forward(request);
                if status != 200 {
                    return (status, said);
                }
                self.accept(token, body, said["ProgressEvent"].clone())
            }
        }
    }

    fn accept(&self, client_token: &str, body: &Value, end: Value) -> (u16, Value) {
        let token = end["RequestToken"].as_str().unwrap().to_owned();
        let mut inner = self.lock();
        let looks_left = inner.looks;
        inner.tokens.insert(client_token.to_owned(), (body.clone(), token.clone()));
        inner.requests.insert(token.clone(), Request { looks_left, end });
        drop(inner);
        self.status(&token)
    }

    fn failing(&self, body: &Value, action: &str, code: &str) -> (u16, Value) {
        let client_token = body["ClientToken"].as_str().unwrap();
        let end = json!({
            "TypeName": body["TypeName"], "Operation": action.to_uppercase().replace("RESOURCE", ""),
            "RequestToken": format!("failing-{client_token}"), "OperationStatus": "FAILED", "ErrorCode": code,
            "StatusMessage": "it was not to be", "EventTime": now(),
        });
        self.accept(client_token, body, end)
    }

    fn status(&self, token: &str) -> (u16, Value) {
        let mut inner = self.lock();
        let Some(request) = inner.requests.get_mut(token) else {
            return (400, refusal("RequestTokenNotFoundException"));
        };
        let mut event = request.end.clone();
        if request.looks_left > 0 {
            request.looks_left -= 1;
            event["OperationStatus"] = "IN_PROGRESS".into();
            event["StatusMessage"] = format!("{} more looks", request.looks_left).into();
            // In the past: nobody waits for long.
            event["RetryAfter"] = (now() - 1).into();
            let told = event.as_object_mut().unwrap();
            told.remove("ErrorCode");
            told.remove("Identifier");
        }
        (200, json!({ "ProgressEvent": event }))
    }

    fn forward(&self, request: &Message) -> (u16, Value) {
        let answered = send(self.server, request).unwrap();
        (answered.status(), answered.json())
    }
}

fn refusal(code: &str) -> Value {
    json!({ "__type": code, "message": "not now, or not like this" })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
