//! The kind of requests in a run, and the check of their answers.

use super::body::{AMOUNT_DIGITS, Body, Field, NUMBER_DIGITS};
use crate::client::Answer;
use crate::report::Outcome;
use crate::transfer::{Transfers, posted};
use counterfoil_prng::scramble;

pub(crate) enum Work {
    Charge,
    Transfer(Transfers),
}

impl Work {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Work::Charge => "/v1/charges",
            Work::Transfer(transfers) if transfers.batch == 1 => "/v1/transfers",
            Work::Transfer(_) => "/v1/transactions/bulk",
        }
    }

    /// Number of items in a request.
    pub(crate) fn per_request(&self) -> u64 {
        match self {
            Work::Charge => 1,
            Work::Transfer(transfers) => transfers.batch as u64,
        }
    }

    pub(super) fn write(&self, body: &mut Body) {
        match self {
            Work::Charge => charge(body),
            Work::Transfer(transfers) if transfers.batch == 1 => transfer(transfers, 0, body),
            Work::Transfer(transfers) => {
                body.text("{\"transactions\":[");
                for item in 0..self.per_request() {
                    body.text(if item == 0 { "" } else { "," });
                    transfer(transfers, item, body);
                }
                body.text("]}");
            }
        }
    }

    /// The accounts of the `nth` transfer of a connection.
    pub(super) fn pair(&self, connection: u64, nth: u64) -> (&str, &str) {
        let pairs = match self {
            Work::Charge => [].as_slice(),
            Work::Transfer(transfers) => &transfers.pairs,
        };
        let place = scramble(connection << 40 ^ nth).checked_rem(pairs.len() as u64).unwrap_or_default();
        let pair = usize::try_from(place).ok().and_then(|place| pairs.get(place));
        pair.map_or(("", ""), |(debited, credited)| (debited, credited))
    }

    /// Classifies the first answer to a request.
    pub(crate) fn judge(&self, answer: &Answer<'_>) -> Outcome {
        let status = answer.head.status;
        let count = match self {
            Work::Charge => u64::from(answer.is_success()),
            Work::Transfer(transfers) if transfers.batch == 1 => u64::from(status == 201),
            Work::Transfer(_) if status == 200 => posted(answer.body()),
            Work::Transfer(_) => 0,
        };
        if count == 0 { Outcome::Refused(status) } else { Outcome::New { count, status } }
    }
}

fn charge(body: &mut Body) {
    body.text("{\"amount\":");
    body.slot(0, Field::Amount, AMOUNT_DIGITS);
    body.text(
        ",\"currency\":\"USD\",\"payment_method\":\"pm_card_visa\",\"description\":\"bench\",\
         \"metadata\":{\"order\":\"",
    );
    body.slot(0, Field::Number, NUMBER_DIGITS);
    body.text("\"}}");
}

fn transfer(transfers: &Transfers, item: u64, body: &mut Body) {
    let (debited, credited) = transfers.pairs.first().map_or((0, 0), |(from, to)| (from.len(), to.len()));
    body.text("{\"from\":\"");
    body.slot(item, Field::Debited, debited);
    body.text("\",\"to\":\"");
    body.slot(item, Field::Credited, credited);
    body.text("\",\"amount\":");
    body.slot(item, Field::Amount, AMOUNT_DIGITS);
    body.text(",\"currency\":\"USD\"}");
}
