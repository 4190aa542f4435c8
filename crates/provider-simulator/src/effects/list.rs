//! `GET /_sim/effects`: the whole list, streamed. Millions of effects neither fill the memory nor
//! hold the provider's lock for longer than one page.

use bytes::Bytes;

use crate::answer::Json;
use crate::simulator::Simulator;

/// Effects rendered under one lock.
const PAGE: usize = 1000;

/// A list being sent: the effects from an index on that existed at the time of the request.
pub(crate) struct List {
    sim: Simulator,
    run: u64,
    next: usize,
    total: usize,
    late_pending: u32,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Head,
    Data { first: bool },
    Done,
}

impl List {
    /// The effects from index `after` on.
    pub(crate) fn new(sim: Simulator, after: usize) -> List {
        let (run, total, late_pending) = {
            let state = sim.state();
            (state.run, state.effects.entries.len(), state.late_pending)
        };
        List { sim, run, next: after.min(total), total, late_pending, stage: Stage::Head }
    }

    /// The next piece of the JSON text. A reset during the transfer cuts the list short, because
    /// those effects are gone.
    pub(crate) fn next_chunk(&mut self) -> Option<Bytes> {
        let mut json = Json::with_capacity(64);
        let mut first = match self.stage {
            Stage::Done => return None,
            Stage::Data { first } => first,
            Stage::Head => {
                let total = u64::try_from(self.total).unwrap_or(u64::MAX);
                json.raw(r#"{"object":"list","total":"#).number(total);
                json.raw(r#","late_pending":"#).number(u64::from(self.late_pending)).raw(r#","data":["#);
                true
            }
        };
        {
            let state = self.sim.state();
            if state.run != self.run {
                self.total = self.next;
            }
            let page_end = self.total.min(self.next.saturating_add(PAGE));
            for effect in state.effects_in(self.next..page_end) {
                if !first {
                    json.raw(",\n");
                }
                first = false;
                effect.write(&mut json);
            }
            self.next = page_end;
        }
        self.stage = Stage::Data { first };
        if self.next == self.total {
            json.raw("]}");
            self.stage = Stage::Done;
        }
        Some(json.into_bytes())
    }
}
