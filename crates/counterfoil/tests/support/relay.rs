//! A relay between a server and its peer that applies planned faults to transfers.

use super::client::{Answer, exchange};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The fault of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer never sees the transfer.
    Unsent,
    /// The peer executes the transfer, and the answer is lost.
    Lost,
    /// The peer executes the transfer, and the answer comes after every deadline.
    Late,
    /// The peer never sees the transfer; the relay answers 502.
    BadGateway,
    /// The peer executes the transfer; the relay answers 500.
    ServerError,
    /// The peer executes the transfer, and the answer names another amount.
    OtherAmount,
    /// The peer executes the transfer, and the answer names another account.
    OtherAccount,
}

pub const FAULTS: [Fault; 5] =
    [Fault::Unsent, Fault::Lost, Fault::Late, Fault::BadGateway, Fault::ServerError];

/// A relay that ends with the test.
pub struct Relay {
    pub port: u16,
    plan: Arc<Mutex<VecDeque<Fault>>>,
}

impl Relay {
    /// Relays to the server on port `upstream`.
    pub fn to(upstream: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, plan) = (listener.local_addr().unwrap().port(), Arc::<Mutex<VecDeque<Fault>>>::default());
        let told = Arc::clone(&plan);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = Arc::clone(&told);
                // Broken connections are expected here.
                std::thread::spawn(move || relay(stream, upstream, &told));
            }
        });
        Relay { port, plan }
    }

    /// Plans the faults of the next transfers; later ones pass.
    pub fn plan(&self, faults: &[Fault]) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }
}

fn relay(stream: TcpStream, upstream: u16, plan: &Mutex<VecDeque<Fault>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "host" | "connection" => {}
            _ => headers.push_str(&line),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
    let fault = if method == "POST" { plan.pop_front() } else { None };
    drop(plan);
    let answer = || exchange(upstream, &method, &path, &headers, &body).ok();
    let mut stream = reader.into_inner();
    match fault {
        None => write(&mut stream, &answer()?),
        Some(Fault::Unsent) => None,
        Some(Fault::Lost) => answer().map(|_| ()),
        Some(Fault::Late) => {
            let answer = answer()?;
            std::thread::sleep(Duration::from_secs(2));
            write(&mut stream, &answer)
        }
        Some(Fault::BadGateway) => write(&mut stream, &page(502)),
        Some(Fault::ServerError) => {
            answer()?;
            write(&mut stream, &page(500))
        }
        Some(Fault::OtherAmount) => write(&mut stream, &altered(answer()?, "\"amount\":1", "\"amount\":2")),
        Some(Fault::OtherAccount) => {
            write(&mut stream, &altered(answer()?, "\"from\":\"ac_", "\"from\":\"ac_0"))
        }
    }
}

fn altered(answer: Answer, from: &str, to: &str) -> Answer {
    assert!(answer.body.contains(from), "{answer:?}");
    Answer { body: answer.body.replacen(from, to, 1), ..answer }
}

fn page(status: u16) -> Answer {
    Answer { status, headers: std::collections::BTreeMap::new(), body: "<html>no</html>".to_owned() }
}

fn write(stream: &mut TcpStream, answer: &Answer) -> Option<()> {
    let Answer { status, headers, body } = answer;
    let own = ["content-length", "connection"];
    let kept = headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let kept: Vec<String> = kept.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (kept, length) = (kept.concat(), body.len());
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\ncontent-length: {length}\r\n{kept}\r\n");
    stream.write_all([head.as_str(), body].concat().as_bytes()).ok()
}
