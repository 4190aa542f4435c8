//! `POST /v1/payment_intents/{id}/cancel`: release held money.

use super::Status;
use crate::answer::Answer;
use crate::effects::EffectKind;
use crate::execute::Context;
use crate::form::Form;
use crate::refusal::Refusal;
use crate::state::State;

/// Stripe's parameters that change nothing here.
const WITHOUT_EFFECT: &[&str] = &["cancellation_reason", "expand", "metadata"];

/// A well-formed request.
#[derive(Debug)]
pub(crate) struct Cancel {
    intent: Box<str>,
}

impl Cancel {
    pub(crate) fn parse(intent: &str, form: Form<'_>) -> Result<Cancel, Refusal> {
        form.finish(WITHOUT_EFFECT)?;
        Ok(Cancel { intent: intent.into() })
    }

    /// Releases the hold. A declined intent can be cancelled too; that releases zero.
    pub(crate) fn perform(self, state: &mut State, context: &Context<'_>) -> Result<Answer, Refusal> {
        let Some(number) = state.intent_number(&self.intent) else {
            return Ok(Answer::Refused(Box::new(Refusal::no_intent(&self.intent, "intent"))));
        };
        let intent = state.intent(number);
        let status = intent.status();
        match status {
            Status::RequiresCapture | Status::RequiresPaymentMethod => {}
            Status::Succeeded { .. } | Status::Canceled => {
                let message = format!(
                    "You cannot cancel this PaymentIntent because it has a status of {}.{}",
                    status.name(),
                    if status == Status::Canceled { "" } else { " Refund it instead." }
                );
                return Ok(Answer::Refused(Box::new(Refusal::state(
                    "payment_intent_unexpected_state",
                    message,
                ))));
            }
        }

        // Accepted: nothing below can refuse but the bounds of the simulator itself.
        let released = intent.capturable(status);
        state.record(EffectKind::Cancel, number, released, context)?;
        state.move_intent(number, Status::Canceled, context.now_ms);
        Ok(Answer::Intent { number, status: Status::Canceled })
    }
}
