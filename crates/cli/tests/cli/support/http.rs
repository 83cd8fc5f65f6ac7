//! One HTTP/1.1 call over a plain socket, so that nothing stands between a test and the server.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::PATIENCE;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }
}

/// Sends one request on a connection of its own and reads the whole answer.
pub(crate) fn call(base_url: &str, request: &str, headers: &str, body: &str) -> Result<Answer> {
    let mut stream = connect(base_url)?;
    let length = body.len();
    // One write, so that the server sees the request whole or not at all.
    let text = format!(
        "{request} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\
         {headers}\r\n{body}"
    );
    stream.write_all(text.as_bytes())?;
    read_answer(stream)
}

/// A GET without anything special.
pub(crate) fn get(base_url: &str, path: &str) -> Answer {
    call(base_url, &format!("GET {path}"), "", "").expect("the server answers")
}

pub(crate) fn connect(base_url: &str) -> Result<TcpStream> {
    let address = base_url.strip_prefix("http://").expect("this client speaks plain http");
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Reads until the server closes; an answer cut short is an error.
pub(crate) fn read_answer(mut stream: impl Read) -> Result<Answer> {
    let mut bytes = Vec::new();
    if let Err(fault) = stream.read_to_end(&mut bytes) {
        // What did come belongs to the story: a part of an answer is worse than none.
        let part = String::from_utf8_lossy(&bytes);
        return Err(Error::new(fault.kind(), format!("{fault}, after {part:?}")));
    }
    let text = String::from_utf8(bytes).expect("this API answers in UTF-8");
    let cut = || Error::new(ErrorKind::UnexpectedEof, format!("cut short: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(cut)?;
    let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
    let told = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
    if told.is_some_and(|length| length != body.len()) {
        return Err(cut());
    }
    Ok(answer)
}
