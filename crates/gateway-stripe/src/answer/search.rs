//! Pages of search results.

use super::intent::{Intent, Status};
use super::read;
use counterfoil_core::payments::provider::{Cause, LookupResult};
use serde::Deserialize;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<Intent<'a>>,
    #[serde(default)]
    has_more: bool,
}

/// The result of a search for this payment.
pub(super) fn found(body: &[u8], payment: &str) -> LookupResult {
    match read::<Page<'_>>(body) {
        Some(page) => page.found(payment),
        None => LookupResult::Unclear(Cause::Unreadable),
    }
}

impl Page<'_> {
    fn found(mut self, payment: &str) -> LookupResult {
        // Intents of other payments mean that the provider did not answer our question.
        if self.data.iter().any(|intent| intent.payment() != Some(payment)) {
            return LookupResult::Unclear(Cause::Unreadable);
        }
        match (self.data.len(), self.has_more) {
            (0, false) => LookupResult::Nothing,
            (0, true) => LookupResult::Unclear(Cause::Unreadable),
            (_, true) => LookupResult::Several,
            (1, false) => self.take(0, payment),
            (_, false) => match self.only_executed() {
                Some(place) => self.take(place, payment),
                None => LookupResult::Several,
            },
        }
    }

    fn take(&mut self, place: usize, payment: &str) -> LookupResult {
        LookupResult::Payment(self.data.swap_remove(place).made(payment))
    }

    /// The only payment executed, provided that all others certainly were not.
    fn only_executed(&self) -> Option<usize> {
        let mut executed = None;
        for (place, intent) in self.data.iter().enumerate() {
            match intent.status {
                Status::Succeeded | Status::RequiresCapture if executed.is_none() => executed = Some(place),
                Status::Canceled | Status::RequiresPaymentMethod => {}
                Status::Succeeded | Status::RequiresCapture | Status::Unsettled => return None,
            }
        }
        executed
    }
}
