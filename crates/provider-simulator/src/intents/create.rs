//! `POST /v1/payment_intents`: make an intent and confirm it at once.

use super::{CaptureMethod, Currency, Intent, Method, Status};
use crate::answer::Answer;
use crate::effects::{EffectKind, Object};
use crate::execute::Context;
use crate::form::{Form, Metadata};
use crate::refusal::Refusal;
use crate::state::State;

/// Stripe's parameters that change nothing here.
const WITHOUT_EFFECT: &[&str] = &[
    "automatic_payment_methods",
    "confirmation_method",
    "description",
    "error_on_requires_action",
    "expand",
    "off_session",
    "payment_method_types",
    "return_url",
    "statement_descriptor",
    "statement_descriptor_suffix",
];

/// A well-formed request.
#[derive(Debug, Clone)]
pub(crate) struct Create {
    amount: u64,
    currency: Currency,
    method: Method,
    capture_method: CaptureMethod,
    metadata: Metadata,
}

impl Create {
    pub(crate) fn parse(mut form: Form<'_>) -> Result<Create, Refusal> {
        let amount = form.require_amount("amount")?;
        let currency = Currency::parse(&form.require("currency")?).ok_or_else(Refusal::bad_currency)?;
        let name = form.require("payment_method")?;
        let method = Method::parse(&name).ok_or_else(|| {
            Refusal::param("payment_method", "resource_missing", format!("No such PaymentMethod: '{name}'"))
        })?;
        if form.require("confirm")? != "true" {
            let message = "Invalid confirm: this provider confirms on creation only; send confirm=true.";
            return Err(Refusal::param("confirm", "parameter_invalid", message));
        }
        let capture_method = match form.take("capture_method").as_deref() {
            None | Some("automatic" | "automatic_async") => CaptureMethod::Automatic,
            Some("manual") => CaptureMethod::Manual,
            Some(other) => {
                let message = format!("Invalid capture_method: must be automatic or manual, not '{other}'.");
                return Err(Refusal::param("capture_method", "parameter_invalid", message));
            }
        };
        let metadata = form.take_metadata()?;
        form.finish(WITHOUT_EFFECT)?;
        Ok(Create { amount, currency, method, capture_method, metadata })
    }

    /// Makes the intent. A declined intent is kept, but it moves no money and has no effect.
    pub(crate) fn perform(self, state: &mut State, context: &Context<'_>) -> Result<Answer, Refusal> {
        let (made, effect) = match (self.method, self.capture_method) {
            (Method::Visa, CaptureMethod::Automatic) => {
                (Status::Succeeded { received: self.amount }, Some(EffectKind::Charge))
            }
            (Method::Visa, CaptureMethod::Manual) => (Status::RequiresCapture, Some(EffectKind::Authorize)),
            (
                Method::Declined | Method::InsufficientFunds,
                CaptureMethod::Automatic | CaptureMethod::Manual,
            ) => (Status::RequiresPaymentMethod, None),
        };
        let second = context.twice.then(|| self.clone());
        let number = self.add(state, context, made, effect)?;
        if let Some(second) = second {
            // The answer names the first intent; only the effects and a search show the second.
            // Without room for it the second does not happen.
            let _ = second.add(state, context, made, effect);
        }
        match effect {
            Some(_) => Ok(Answer::Intent { number, status: made }),
            None => Ok(Answer::Declined { number }),
        }
    }

    fn add(
        self,
        state: &mut State,
        context: &Context<'_>,
        made: Status,
        effect: Option<EffectKind>,
    ) -> Result<u32, Refusal> {
        let number = state.next_intent()?;
        if let Some(kind) = effect {
            let payment = self.metadata.payment.as_deref();
            state.effects.record(
                kind,
                Object::Intent(number),
                payment,
                self.amount,
                self.currency,
                context,
            )?;
        }
        state.add_intent(Intent {
            amount: self.amount,
            currency: self.currency,
            method: self.method,
            capture_method: self.capture_method,
            metadata: self.metadata,
            created_ms: context.now_ms,
            made,
            moved: None,
            refunded: 0,
            earlier: None,
        });
        Ok(number)
    }
}
