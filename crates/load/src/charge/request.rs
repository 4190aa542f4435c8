//! The bytes of a charge request: built once per connection, then only digits are patched in.
//!
//! A request is a function of its number, so repeating a number repeats the very same bytes.

use std::fmt::Write as _;

use crate::Plan;

const NUMBER_DIGITS: usize = 10;
const AMOUNT_DIGITS: usize = 4;
/// Amounts run over 10.00 to 99.99: always four digits, so the length never changes.
const AMOUNT_MIN: u64 = 1000;
const AMOUNTS: u64 = 9000;

pub(crate) struct Request {
    bytes: Vec<u8>,
    key_at: usize,
    key_end: usize,
    amount_at: usize,
    order_at: usize,
}

impl Request {
    pub(crate) fn new(plan: &Plan, connection: usize) -> Self {
        let zeros = "0".repeat(NUMBER_DIGITS);
        let amount_before = "{\"amount\":";
        let amount_after = ",\"currency\":\"USD\",\"payment_method\":\"pm_card_visa\",\"description\":\"bench\",\
             \"metadata\":{\"order\":\"";
        let body_end = "\"}}";
        let digits = AMOUNT_DIGITS + NUMBER_DIGITS;
        let body_len = amount_before.len() + amount_after.len() + body_end.len() + digits;

        let mut text = format!(
            "POST /v1/charges HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {body_len}\r\nIdempotency-Key: ",
            plan.host, plan.api_key,
        );
        let key_at = text.len();
        let _ = write!(text, "{}-{connection:04}-{zeros}", plan.key_prefix);
        let key_end = text.len();
        text.push_str("\r\n\r\n");
        text.push_str(amount_before);
        let amount_at = text.len();
        text.push_str(&zeros[..AMOUNT_DIGITS]);
        text.push_str(amount_after);
        let order_at = text.len();
        text.push_str(&zeros);
        text.push_str(body_end);
        Self { bytes: text.into_bytes(), key_at, key_end, amount_at, order_at }
    }

    /// The bytes of the request with this number.
    pub(crate) fn numbered(&mut self, number: u64) -> &[u8] {
        self.write(self.key_end - NUMBER_DIGITS, NUMBER_DIGITS, number);
        self.write(self.amount_at, AMOUNT_DIGITS, AMOUNT_MIN + number % AMOUNTS);
        self.write(self.order_at, NUMBER_DIGITS, number);
        &self.bytes
    }

    /// The idempotency key of the last numbered request.
    pub(crate) fn key(&self) -> String {
        String::from_utf8_lossy(&self.bytes[self.key_at..self.key_end]).into_owned()
    }

    fn write(&mut self, at: usize, digits: usize, number: u64) {
        let mut rest = number;
        for slot in self.bytes[at..at + digits].iter_mut().rev() {
            *slot = b'0' + u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
        // Ten digits last for a century of requests on one connection.
        assert_eq!(rest, 0, "the request number does not fit its field");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parts(bytes: &[u8]) -> (String, Value) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        (head.to_owned(), serde_json::from_str(body).unwrap())
    }

    #[test]
    fn a_number_decides_the_whole_request() {
        let plan = crate::plan::tests::small("127.0.0.1:1".parse().unwrap());
        let mut request = Request::new(&plan, 7);
        let first = request.numbered(12_345).to_vec();
        assert_eq!(request.key(), "run1-0007-0000012345");
        let (head, body) = parts(&first);
        assert!(head.starts_with("POST /v1/charges HTTP/1.1\r\nHost: localhost\r\n"));
        assert!(head.ends_with("\r\nIdempotency-Key: run1-0007-0000012345"));
        let expected = json!({
            "amount": 4345, "currency": "USD", "payment_method": "pm_card_visa", "description": "bench",
            "metadata": {"order": "0000012345"},
        });
        assert_eq!(body, expected);
        let second = request.numbered(8_999).to_vec();
        assert_eq!(parts(&second).1["amount"], 9999);
        assert_eq!(second.len(), first.len());
        assert_eq!(request.numbered(12_345), first);
    }
}
