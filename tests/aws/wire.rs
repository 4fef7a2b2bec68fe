//! As much of HTTP/1.1 as is spoken here.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// A message as it came: its first lines, and its body.
pub struct Message {
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut message = Self { head, body: Vec::new() };
        match message.header("content-length").and_then(|length| length.parse().ok()) {
            Some(length) => {
                message.body.resize(length, 0);
                reader.read_exact(&mut message.body)?;
            }
            // Until the end of the connection, for answers; requests here always have a length.
            None => drop(reader.read_to_end(&mut message.body)?),
        }
        Ok(message)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.iter().filter_map(|line| line.split_once(':'));
        fields.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The HTTP status of an answer.
    pub fn status(&self) -> u16 {
        self.head[0].split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Sends a request on a connection of its own.
pub fn send(to: SocketAddr, request: &Message) -> io::Result<Message> {
    let mut stream = TcpStream::connect(to)?;
    let kept = request.head.iter().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head = kept.fold(String::new(), |head, line| head + line + "\r\n");
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    stream.write_all(&request.body)?;
    Message::read(&stream)
}

/// Answers, and closes the connection.
pub fn answer(mut stream: &TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Any\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
