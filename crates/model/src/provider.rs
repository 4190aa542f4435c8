//! The provider: its effects, and its memory by key.

use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::time::Time;
use std::collections::BTreeMap;

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Message {
    pub(crate) key: usize,
    /// The generation of its provider key.
    pub(crate) generation: u16,
    pub(crate) sent_at: Time,
    /// The worker that still waits for the answer.
    pub(crate) worker: Option<usize>,
}

/// The provider's treatment of a received request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestFate {
    /// Executed and answered.
    Approve,
    /// Refused by the issuer.
    Decline,
    /// Executed, and answered with an error.
    ApproveThenFail,
    /// An error, and nothing was executed.
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Approved,
    Declined,
    ServerError,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Provider {
    pub(crate) effects: Vec<u8>,
    pub(crate) declined: Vec<bool>,
    pub(crate) memory: BTreeMap<(usize, u16), (Answer, Time)>,
}

impl Provider {
    pub(crate) fn new(keys: usize) -> Provider {
        Provider { effects: vec![0; keys], declined: vec![false; keys], memory: BTreeMap::new() }
    }

    pub(crate) fn effects(&self, key: usize) -> u8 {
        self.effects.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn has_declined(&self, key: usize) -> bool {
        self.declined.get(key).copied().unwrap_or(false)
    }

    /// The stored answer that the provider repeats instead of executing the request.
    pub(crate) fn remembered(&self, message: &Message, rules: &Rules, now: Time) -> Option<Answer> {
        let window = rules.dedup_window?;
        let (answer, since) = self.memory.get(&(message.key, message.generation))?;
        (now < since.plus(window)).then_some(*answer)
    }

    /// Whether the provider would still execute this request.
    pub(crate) fn would_execute(&self, message: &Message, rules: &Rules, now: Time) -> bool {
        self.remembered(message, rules, now).is_none() && now <= message.sent_at.plus(rules.late_delivery)
    }

    /// Receives a request and answers it.
    pub(crate) fn receive(
        &mut self,
        message: &Message,
        fate: RequestFate,
        rules: &Rules,
        now: Time,
    ) -> Answer {
        if let Some(answer) = self.remembered(message, rules, now) {
            return answer;
        }
        let (executes, answer) = match fate {
            RequestFate::Approve => (true, Answer::Approved),
            RequestFate::Decline => (false, Answer::Declined),
            RequestFate::ApproveThenFail => (true, Answer::ServerError),
            RequestFate::Fail => (false, Answer::ServerError),
        };
        if executes && let Some(effects) = self.effects.get_mut(message.key) {
            *effects = effects.saturating_add(1);
        }
        if answer == Answer::Declined
            && let Some(declined) = self.declined.get_mut(message.key)
        {
            *declined = true;
        }
        let kept = match answer {
            Answer::Approved | Answer::Declined => Some(answer),
            Answer::ServerError if rules.stores_errors => Some(answer),
            Answer::ServerError if rules.reexecutes_errors => None,
            // The provider remembers the real outcome, despite the error answer.
            Answer::ServerError => executes.then_some(Answer::Approved),
        };
        if let Some(kept) = kept {
            self.memory.insert((message.key, message.generation), (kept, now));
        }
        answer
    }
}
