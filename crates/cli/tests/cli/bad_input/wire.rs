//! HTTP/1.1 with nothing between the test and the socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Shorter than the server waits for a slow body (10 s): a case that ends in waiting fails.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// A request with its length, unless the headers speak of lengths themselves.
pub(crate) fn request(line: &[u8], headers: &[Vec<u8>], body: &[u8]) -> Vec<u8> {
    let measured = headers.iter().any(|header| {
        let header = header.to_ascii_lowercase();
        header.starts_with(b"content-length:") || header.starts_with(b"transfer-encoding:")
    });
    let mut bytes = [line, b" HTTP/1.1\r\nHost: svc.test\r\n"].concat();
    for header in headers {
        bytes.extend(header);
        bytes.extend(b"\r\n");
    }
    if !measured && (!body.is_empty() || line.starts_with(b"P")) {
        bytes.extend(format!("Content-Length: {}\r\n", body.len()).bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}

pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null when it is something else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body without what differs between any two answers.
    pub(crate) fn json_without_id(&self) -> Value {
        let mut json = self.json();
        if let Some(object) = json.as_object_mut() {
            object.remove("requestId");
        }
        json
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection that may serve several requests.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a timeout can be set");
        stream.set_write_timeout(Some(ANSWER_TIMEOUT)).expect("a timeout can be set");
        stream.set_nodelay(true).expect("a socket option can be set");
        Self(BufReader::new(stream))
    }

    /// Sends and reads at the same time: a server may refuse a body before it has arrived.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Answer, String> {
        let mut sending = self.0.get_ref().try_clone().expect("a socket can be shared");
        std::thread::scope(|scope| {
            scope.spawn(move || sending.write_all(request));
            self.answer(request.starts_with(b"HEAD "))
        })
    }

    pub(crate) fn answer(&mut self, head_only: bool) -> Result<Answer, String> {
        self.read_answer(head_only).map_err(|fault| format!("no answer: {fault}"))
    }

    fn read_answer(&mut self, head_only: bool) -> std::io::Result<Answer> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("not HTTP: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if !head_only {
            answer.body = self.body(&answer)?;
        }
        Ok(answer)
    }

    fn body(&mut self, answer: &Answer) -> std::io::Result<Vec<u8>> {
        if answer.header("transfer-encoding").is_some() {
            return self.chunks();
        }
        let length = answer.header("content-length").and_then(|length| length.parse().ok());
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                self.0.read_exact(&mut body)?;
            }
            None => {
                self.0.read_to_end(&mut body)?;
            }
        }
        Ok(body)
    }

    fn chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(std::io::Error::other)?;
            let mut chunk = vec![0; size];
            self.0.read_exact(&mut chunk)?;
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
            body.extend(chunk);
        }
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(std::io::Error::other("the server hung up"));
        }
        Ok(line.trim_end().to_owned())
    }

    /// True when the server hangs up without saying anything more.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(fault) => fault.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
