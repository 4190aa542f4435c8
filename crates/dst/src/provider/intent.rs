//! A payment at the provider: its held, captured and refunded amounts, and its answers to lookups.

use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderOutcome, ProviderStep, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::money::Money;

#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) reference: String,
    pub(super) payment: String,
    pub(super) amount: i64,
    pub(super) asset: Asset,
    pub(super) captured: i64,
    pub(super) refunded: i64,
    /// The states and the times at which they began; the last one is current.
    pub(super) path: Vec<(u64, Stands)>,
}

/// The payment does not allow the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

impl Intent {
    pub(super) fn stands(&self) -> Stands {
        self.path.last().map_or(Stands::Held, |(_, stands)| *stands)
    }

    /// The last visible state, or `None` if the payment is not visible yet.
    fn seen(&self, is_seen: impl Fn(u64) -> bool) -> Option<Stands> {
        self.path.iter().take_while(|(at, _)| is_seen(*at)).last().map(|(_, stands)| *stands)
    }

    /// Captures `amount` of the hold; the rest is released.
    pub(super) fn capture(&mut self, amount: i64, asset: Asset, now: u64) -> Result<(), Refused> {
        let fits =
            self.stands() == Stands::Held && asset == self.asset && (1..=self.amount).contains(&amount);
        if !fits {
            return Err(Refused);
        }
        self.captured = amount;
        self.path.push((now, Stands::Captured));
        Ok(())
    }

    /// Releases the hold.
    pub(super) fn cancel(&mut self, now: u64) -> Result<(), Refused> {
        if self.stands() != Stands::Held {
            return Err(Refused);
        }
        self.path.push((now, Stands::Canceled));
        Ok(())
    }

    /// Refunds `amount`.
    pub(super) fn refund(&mut self, amount: i64, asset: Asset) -> Result<(), Refused> {
        let left = self.captured.saturating_sub(self.refunded);
        let fits = self.stands() == Stands::Captured && asset == self.asset && (1..=left).contains(&amount);
        if !fits {
            return Err(Refused);
        }
        self.refunded = self.refunded.saturating_add(amount);
        Ok(())
    }

    fn approved(&self, stands: Stands, amount: i64) -> ProviderOutcome {
        ProviderOutcome::Approved(Approval {
            reference: self.reference.clone(),
            stands,
            amount_minor: amount,
            asset: Some(self.asset),
            payment: Some(self.payment.clone()),
        })
    }

    fn too_late(&self, code: &str) -> ProviderOutcome {
        let reference = Some(self.reference.clone());
        ProviderOutcome::Declined(Decline { code: code.to_owned(), decline_code: None, reference })
    }

    /// The payment's creation, as a search finds it.
    pub(super) fn made(&self, is_seen: impl Fn(u64) -> bool) -> Option<ProviderOutcome> {
        Some(match self.seen(is_seen)? {
            Stands::Captured | Stands::Refunded | Stands::PaidOut => {
                self.approved(Stands::Captured, self.captured)
            }
            Stands::Held => self.approved(Stands::Held, self.amount),
            Stands::Canceled => self.too_late("canceled"),
        })
    }

    /// The result of a step on the payment, as a connector reads it from the payment's state.
    pub(super) fn after(
        &self,
        step: ProviderStep,
        asked: Money,
        is_seen: impl Fn(u64) -> bool,
    ) -> LookupResult {
        let Some(stands) = self.seen(is_seen) else { return LookupResult::Unclear(Cause::Unreadable) };
        match (step, stands) {
            (
                ProviderStep::Charge | ProviderStep::Authorize | ProviderStep::Refund | ProviderStep::Payout,
                _,
            )
            | (_, Stands::PaidOut) => LookupResult::Unclear(Cause::Unreadable),
            (ProviderStep::Capture | ProviderStep::Void, Stands::Held) => LookupResult::Nothing,
            (ProviderStep::Capture, Stands::Captured | Stands::Refunded) => {
                let amount = if self.captured == 0 { asked.minor() } else { self.captured };
                LookupResult::Payment(self.approved(Stands::Captured, amount))
            }
            (ProviderStep::Capture, Stands::Canceled) => LookupResult::Payment(self.too_late("canceled")),
            (ProviderStep::Void, Stands::Canceled) => {
                LookupResult::Payment(self.approved(Stands::Canceled, self.amount))
            }
            (ProviderStep::Void, Stands::Captured | Stands::Refunded) => {
                LookupResult::Payment(self.too_late("captured"))
            }
        }
    }
}
