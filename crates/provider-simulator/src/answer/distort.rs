//! Distorted answers: bugs of a provider, on request.

use bytes::Bytes;
use serde_json::Value;

use super::Reply;

/// Fields with amounts.
const AMOUNTS: [&str; 3] = ["amount", "amount_capturable", "amount_received"];

impl Reply {
    /// Adds one minor unit to every amount. A refusal has none.
    pub(crate) fn of_another_amount(self) -> Self {
        self.changed(|object| {
            for name in AMOUNTS {
                if let Some(amount) = object[name].as_u64().filter(|amount| *amount > 0) {
                    object[name] = amount.saturating_add(1).into();
                }
            }
        })
    }

    /// Changes the answer to an unfinished one. A refusal stays as it is.
    pub(crate) fn unfinished(self) -> Self {
        self.changed(|object| {
            let is_refund = object["object"] == "refund";
            object["status"] = if is_refund { "pending" } else { "processing" }.into();
        })
    }

    fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if self.status.is_success()
            && let Ok(mut object) = serde_json::from_slice(&self.body)
        {
            change(&mut object);
            self.body = Bytes::from(object.to_string());
        }
        self
    }
}
