//! `POST /v1/payment_intents/{id}/capture`: capture held money, once, up to the held amount; the
//! rest is released.

use super::Status;
use crate::answer::Answer;
use crate::effects::EffectKind;
use crate::execute::Context;
use crate::form::Form;
use crate::refusal::Refusal;
use crate::state::State;

/// Stripe's parameters that change nothing here.
const WITHOUT_EFFECT: &[&str] =
    &["expand", "metadata", "statement_descriptor", "statement_descriptor_suffix"];

/// A well-formed request.
#[derive(Debug)]
pub(crate) struct Capture {
    intent: Box<str>,
    /// `None` captures the whole hold.
    amount: Option<u64>,
}

impl Capture {
    pub(crate) fn parse(intent: &str, mut form: Form<'_>) -> Result<Capture, Refusal> {
        let amount = form.take_amount("amount_to_capture")?;
        form.finish(WITHOUT_EFFECT)?;
        Ok(Capture { intent: intent.into(), amount })
    }

    /// Captures the money. A capture executed twice is two effects on one intent.
    pub(crate) fn perform(self, state: &mut State, context: &Context<'_>) -> Result<Answer, Refusal> {
        let Some(number) = state.intent_number(&self.intent) else {
            return Ok(Answer::Refused(Box::new(Refusal::no_intent(&self.intent, "intent"))));
        };
        let intent = state.intent(number);
        let status = intent.status();
        match status {
            Status::RequiresCapture => {}
            Status::RequiresPaymentMethod | Status::Succeeded { .. } | Status::Canceled => {
                let message = format!(
                    "This PaymentIntent could not be captured because it has a status of {}; only one with a \
                     status of requires_capture can be.",
                    status.name()
                );
                return Ok(Answer::Refused(Box::new(Refusal::state(
                    "payment_intent_unexpected_state",
                    message,
                ))));
            }
        }
        let capturable = intent.capturable(status);
        let amount = self.amount.unwrap_or(capturable);
        if amount > capturable {
            let message = format!("The amount to capture, {amount}, is above the capturable {capturable}.");
            let refusal = Refusal::param("amount_to_capture", "amount_too_large", message);
            return Ok(Answer::Refused(Box::new(refusal)));
        }

        // Accepted: nothing below can refuse but the bounds of the simulator itself.
        let captured = Status::Succeeded { received: amount };
        state.record(EffectKind::Capture, number, amount, context)?;
        state.move_intent(number, captured, context.now_ms);
        Ok(Answer::Intent { number, status: captured })
    }
}
