//! An HTTP client that shares no code with the server.

use super::text;
use counterfoil_testkit::http::{Request, ask_blocking};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    /// The parts that a replay must repeat.
    pub fn declared(&self) -> (u16, Vec<Option<&String>>, &str) {
        let names = ["content-type", "location", "idempotency-expires"];
        (self.status, names.map(|name| self.headers.get(name)).to_vec(), &self.body)
    }

    pub fn error(&self) -> String {
        field(&self.body, "error")
    }

    pub fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }
}

/// A tenant's client for one server, with one connection per request.
#[derive(Clone)]
pub struct Client {
    port: u16,
    api_key: String,
}

/// Longer than the server lets a request wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(40);
const CHARGE: &str = r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa"}"#;

impl Client {
    pub fn new(port: u16, api_key: &str) -> Client {
        Client { port, api_key: api_key.to_owned() }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.try_get(path).unwrap()
    }

    pub fn try_get(&self, path: &str) -> std::io::Result<Answer> {
        exchange(self.port, "GET", path, &format!("Authorization: Bearer {}\r\n", self.api_key), "")
    }

    pub fn post(&self, path: &str, key: &str, body: &str) -> std::io::Result<Answer> {
        let headers = format!(
            "Authorization: Bearer {}\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n",
            self.api_key
        );
        exchange(self.port, "POST", path, &headers, body)
    }

    /// Charges 1250 under `key`.
    pub fn charge(&self, key: &str) -> Answer {
        self.try_charge(key).unwrap()
    }

    pub fn try_charge(&self, key: &str) -> std::io::Result<Answer> {
        self.post("/v1/charges", key, CHARGE)
    }

    /// Repeats the charge until its answer is final.
    pub fn until_charged(&self, key: &str) -> Answer {
        self.until_final("/v1/charges", key, CHARGE)
    }

    /// Repeats a request, also while a server is down, until its answer is final.
    pub fn until_final(&self, path: &str, key: &str, body: &str) -> Answer {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            match self.post(path, key, body) {
                Ok(answer) if answer.status != 503 && answer.status != 409 => return answer,
                Ok(_) | Err(_) => assert!(Instant::now() < deadline, "{key} has no answer after a minute"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The state of a key's record; `None` if the key is unknown.
    pub fn key_state(&self, key: &str) -> Option<String> {
        let answer = self.get(&format!("/v1/idempotency-keys/{key}"));
        (answer.status == 200).then(|| field(&answer.body, "state"))
    }
}

/// The value of a string member in flat JSON.
pub fn field(json: &str, name: &str) -> String {
    let start = json.find(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("no {name} in {json}"));
    json.get(start + name.len() + 4..).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

/// The value of an integer member in flat JSON.
pub fn number(json: &str, name: &str) -> i64 {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {json}"));
    rest.split([',', '}']).next().and_then(|digits| digits.parse().ok()).expect("a number")
}

/// Sends one request on its own connection.
pub fn exchange(port: u16, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
    let close = [("connection", "close")];
    let given = headers.lines().filter_map(|line| line.split_once(": "));
    let headers: Vec<(&str, &str)> = close.into_iter().chain(given).collect();
    let request = Request { method, path, headers: &headers, body };
    let answer = ask_blocking(SocketAddr::from(([127, 0, 0, 1], port)), &request, ANSWER_LIMIT)?;
    Ok(Answer {
        status: answer.status,
        headers: answer.headers.into_iter().collect(),
        body: text(&answer.body),
    })
}
