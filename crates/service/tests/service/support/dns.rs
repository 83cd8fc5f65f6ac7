//! A name server for tests: real UDP on this machine, answers as a closure says, remembered by nobody.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

#[derive(Clone, Debug)]
pub(crate) enum DnsAnswer {
    /// Of either family; each is told to those who ask for it.
    Addresses(Vec<IpAddr>),
    NoSuchName,
    ServerFailure,
    Silence,
}

impl DnsAnswer {
    pub(crate) fn addresses(texts: &[&str]) -> Self {
        Self::Addresses(texts.iter().map(|text| text.parse().unwrap()).collect())
    }
}

/// Ends with the test.
pub(crate) struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<HashMap<(String, u16), usize>>>,
    server: JoinHandle<()>,
}

impl NameServer {
    /// Always the same addresses, whatever the name.
    pub(crate) async fn saying(addresses: &[&str]) -> Self {
        let answer = DnsAnswer::addresses(addresses);
        Self::start(move |_, _| answer.clone()).await
    }

    /// `answer` is given the name and how often its addresses of this family were asked for before.
    pub(crate) async fn start(
        answer: impl Fn(&str, usize) -> DnsAnswer + Send + Sync + 'static,
    ) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(HashMap::new()));
        let counts = Arc::clone(&asked);
        let server = tokio::spawn(async move {
            let mut packet = [0; 1_500];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                let question = Question::read(&packet[..length]);
                let number = {
                    let mut counts = counts.lock().unwrap();
                    let count = counts.entry((question.name.clone(), question.family)).or_insert(0);
                    *count += 1;
                    *count - 1
                };
                if let Some(reply) = question.reply(&answer(&question.name, number)) {
                    socket.send_to(&reply, from).await.unwrap();
                }
            }
        });
        Self { address, asked, server }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often the IPv6 addresses of a name were asked for.
    pub(crate) fn asked(&self, name: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.get(&(name.to_owned(), TYPE_AAAA)).copied().unwrap_or(0)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Question {
    name: String,
    family: u16,
    id: [u8; 2],
    /// As it came: it is repeated in the reply.
    bytes: Vec<u8>,
}

impl Question {
    /// Of RFC 1035, section 4: a header of twelve bytes, then labels, a type and a class.
    fn read(packet: &[u8]) -> Self {
        let (mut labels, mut at) = (Vec::new(), 12);
        while packet[at] > 0 {
            let label = &packet[at + 1..=at + usize::from(packet[at])];
            labels.push(String::from_utf8(label.to_ascii_lowercase()).unwrap());
            at += 1 + label.len();
        }
        Self {
            name: labels.join("."),
            family: u16::from_be_bytes([packet[at + 1], packet[at + 2]]),
            id: [packet[0], packet[1]],
            bytes: packet[12..at + 5].to_vec(),
        }
    }

    fn reply(&self, answer: &DnsAnswer) -> Option<Vec<u8>> {
        let (code, addresses): (u8, &[IpAddr]) = match answer {
            DnsAnswer::Addresses(addresses) => (0, addresses),
            DnsAnswer::NoSuchName => (3, &[]),
            DnsAnswer::ServerFailure => (2, &[]),
            DnsAnswer::Silence => return None,
        };
        let records: Vec<_> =
            addresses.iter().filter_map(|address| self.record(*address)).collect();
        let count = u8::try_from(records.len()).unwrap();
        let header = [self.id[0], self.id[1], 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0];
        Some([&header[..], &self.bytes, &records.concat()].concat())
    }

    /// The name by reference to the question, one class for all, and a life of no seconds.
    fn record(&self, address: IpAddr) -> Option<Vec<u8>> {
        let (family, data) = match address {
            IpAddr::V4(address) => (TYPE_A, address.octets().to_vec()),
            IpAddr::V6(address) => (TYPE_AAAA, address.octets().to_vec()),
        };
        let length = u8::try_from(data.len()).unwrap();
        let [high, low] = family.to_be_bytes();
        let head = [0xc0, 12, high, low, 0, 1, 0, 0, 0, 0, 0, length];
        (family == self.family).then(|| [&head[..], &data].concat())
    }
}
