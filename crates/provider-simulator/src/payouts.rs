//! `POST /v1/payouts` and `GET /v1/payouts/{id}`: pay to a bank account.
//!
//! A payout's state is final from its creation. A payout to [`CLOSED`] fails: the object is kept,
//! but no money moved.

use crate::answer::{Answer, Reply};
use crate::effects::{EffectKind, Object};
use crate::execute::Context;
use crate::form::{Form, Metadata};
use crate::id;
use crate::intents::Currency;
use crate::refusal::Refusal;
use crate::state::State;

/// Stripe's parameters that change nothing here.
const WITHOUT_EFFECT: &[&str] = &["description", "expand", "method", "source_type", "statement_descriptor"];

/// The bank account that cannot be paid.
const CLOSED: &str = "ba_account_closed";

#[derive(Debug)]
pub(crate) struct Payout {
    pub(crate) amount: u64,
    pub(crate) currency: Currency,
    pub(crate) destination: Box<str>,
    pub(crate) metadata: Metadata,
    pub(crate) created_ms: u64,
}

/// A well-formed request.
#[derive(Debug)]
pub(crate) struct CreatePayout {
    amount: u64,
    currency: Currency,
    destination: Box<str>,
    metadata: Metadata,
}

impl Payout {
    /// The reason of its failure, if it failed.
    pub(crate) fn failure(&self) -> Option<&'static str> {
        (&*self.destination == CLOSED).then_some("account_closed")
    }
}

impl CreatePayout {
    pub(crate) fn parse(mut form: Form<'_>) -> Result<CreatePayout, Refusal> {
        let amount = form.require_amount("amount")?;
        let currency = Currency::parse(&form.require("currency")?).ok_or_else(Refusal::bad_currency)?;
        // The default is the account's own bank account.
        let destination = form.take("destination").map_or("ba_default".into(), Into::<Box<str>>::into);
        if !destination.starts_with("ba_") {
            let message = format!("No such external account: '{destination}'");
            return Err(Refusal::param("destination", "resource_missing", message));
        }
        let metadata = form.take_metadata()?;
        form.finish(WITHOUT_EFFECT)?;
        Ok(CreatePayout { amount, currency, destination, metadata })
    }

    /// Pays. A payout executed twice is two effects; the object is the first.
    pub(crate) fn perform(self, state: &mut State, context: &Context<'_>) -> Result<Answer, Refusal> {
        let CreatePayout { amount, currency, destination, metadata } = self;
        let payout = Payout { amount, currency, destination, metadata, created_ms: context.now_ms };
        let number = state.next_payout()?;
        if payout.failure().is_none() {
            let (object, payment) = (Object::Payout(number), payout.metadata.payment.as_deref());
            state.effects.record(EffectKind::Payout, object, payment, amount, currency, context)?;
            if context.twice {
                // Without room for it the second effect does not happen.
                let _ = state.effects.record(EffectKind::Payout, object, payment, amount, currency, context);
            }
        }
        state.add_payout(payout);
        Ok(Answer::Payout { number })
    }
}

/// The payout, if it existed at `as_of_ms`.
pub(crate) fn get(state: &State, id: &str, as_of_ms: u64) -> Reply {
    let seen = id::number(id, id::PAYOUT, state.run)
        .filter(|number| state.payout(*number).is_some_and(|payout| payout.created_ms <= as_of_ms));
    match seen {
        Some(number) => Answer::Payout { number }.render(state),
        None => Reply::refused(&Refusal::no_object("payout", id, "payout")),
    }
}
