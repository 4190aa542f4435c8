//! `POST /v1/refunds`: give captured money back, up to the captured amount.

use crate::answer::Answer;
use crate::effects::EffectKind;
use crate::execute::Context;
use crate::form::{Form, Metadata};
use crate::intents::Intent;
use crate::refusal::Refusal;
use crate::state::State;

/// Stripe's parameters that change nothing here.
const WITHOUT_EFFECT: &[&str] = &["expand", "reason"];

#[derive(Debug, Clone)]
pub(crate) struct Refund {
    pub(crate) number: u32,
    pub(crate) intent: u32,
    pub(crate) amount: u64,
    pub(crate) created_ms: u64,
    pub(crate) metadata: Metadata,
}

/// A well-formed request.
#[derive(Debug)]
pub(crate) struct CreateRefund {
    intent: Box<str>,
    /// `None` refunds the whole rest.
    amount: Option<u64>,
    metadata: Metadata,
}

impl CreateRefund {
    pub(crate) fn parse(mut form: Form<'_>) -> Result<CreateRefund, Refusal> {
        let intent = form.require("payment_intent")?.into();
        let amount = form.take_amount("amount")?;
        let metadata = form.take_metadata()?;
        form.finish(WITHOUT_EFFECT)?;
        Ok(CreateRefund { intent, amount, metadata })
    }

    /// Refunds. A refund executed twice is two effects; the intent counts the first.
    pub(crate) fn perform(self, state: &mut State, context: &Context<'_>) -> Result<Answer, Refusal> {
        let Some(intent_number) = state.intent_number(&self.intent) else {
            return Ok(Answer::Refused(Box::new(Refusal::no_intent(&self.intent, "payment_intent"))));
        };
        let intent = state.intent(intent_number);
        let received = Intent::received(intent.status());
        if received == 0 {
            let message = format!(
                "This PaymentIntent has no captured charge to refund: its status is {}.",
                intent.status().name()
            );
            return Ok(Answer::Refused(Box::new(Refusal::state("payment_intent_unexpected_state", message))));
        }
        let left = received.saturating_sub(intent.refunded);
        if left == 0 {
            let refusal =
                Refusal::state("charge_already_refunded", "The charge has already been refunded in full.");
            return Ok(Answer::Refused(Box::new(refusal)));
        }
        let amount = self.amount.unwrap_or(left);
        if amount > left {
            let message = format!("Refund amount {amount} is greater than the unrefunded amount {left}.");
            return Ok(Answer::Refused(Box::new(Refusal::param("amount", "amount_too_large", message))));
        }

        // Accepted: nothing below can refuse but the bounds of the simulator itself.
        state.record(EffectKind::Refund, intent_number, amount, context)?;
        let number = state.add_refund(intent_number, amount);
        Ok(Answer::Refund(Box::new(Refund {
            number,
            intent: intent_number,
            amount,
            created_ms: context.now_ms,
            metadata: self.metadata,
        })))
    }
}
