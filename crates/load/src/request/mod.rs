//! The bytes of a request: built once per connection; afterwards only digits and equally long names
//! are patched in.
//!
//! A request is a function of its number, so repeating a number repeats the very same bytes.

mod body;
mod work;

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use crate::Plan;
use body::{AMOUNT_DIGITS, Body, Field, NUMBER_DIGITS, Slot};
pub(crate) use work::Work;

/// Amounts run over 10.00 to 99.99: always four digits, so the length never changes.
const AMOUNT_MIN: u64 = 1000;
const AMOUNTS: u64 = 9000;

pub(crate) struct Request {
    bytes: Vec<u8>,
    key: Range<usize>,
    slots: Vec<Slot>,
    work: Arc<Work>,
    connection: u64,
}

impl Request {
    pub(crate) fn new(plan: &Plan, work: Arc<Work>, connection: usize) -> Self {
        let mut body = Body::default();
        work.write(&mut body);
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nIdempotency-Key: ",
            work.path(),
            plan.host,
            plan.api_key,
            body.text.len(),
        );
        let key_at = head.len();
        let _ = write!(head, "{}-{connection:04}-{:0NUMBER_DIGITS$}", plan.key_prefix, 0);
        let key = key_at..head.len();
        head.push_str("\r\n\r\n");

        let mut slots = vec![Slot { at: key.end - NUMBER_DIGITS, item: 0, field: Field::Number }];
        slots.extend(body.slots.into_iter().map(|slot| Slot { at: head.len() + slot.at, ..slot }));
        head.push_str(&body.text);
        Self { bytes: head.into_bytes(), key, slots, work, connection: connection as u64 }
    }

    /// The bytes of the request with this number.
    pub(crate) fn numbered(&mut self, number: u64) -> &[u8] {
        let first = number * self.work.per_request();
        for Slot { at, item, field } in &self.slots {
            let nth = first + item;
            match field {
                Field::Number => put_digits(&mut self.bytes, *at, NUMBER_DIGITS, number),
                Field::Amount => put_digits(&mut self.bytes, *at, AMOUNT_DIGITS, AMOUNT_MIN + nth % AMOUNTS),
                Field::Debited => put(&mut self.bytes, *at, self.work.pair(self.connection, nth).0),
                Field::Credited => put(&mut self.bytes, *at, self.work.pair(self.connection, nth).1),
            }
        }
        &self.bytes
    }

    /// The idempotency key of the last numbered request.
    pub(crate) fn key(&self) -> String {
        String::from_utf8_lossy(&self.bytes[self.key.clone()]).into_owned()
    }
}

fn put(bytes: &mut [u8], at: usize, text: &str) {
    bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
}

fn put_digits(bytes: &mut [u8], at: usize, digits: usize, number: u64) {
    let mut rest = number;
    for slot in bytes[at..at + digits].iter_mut().rev() {
        *slot = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    // Ten digits last for a century of requests on one connection.
    assert_eq!(rest, 0, "the request number does not fit its field");
}

#[cfg(test)]
mod tests;
