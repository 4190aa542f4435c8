//! `GET /_sim/effects`: the whole list, streamed, so that millions of effects neither fill the memory nor hold
//! the provider's lock for longer than one page.

use bytes::Bytes;

use crate::answer::Json;
use crate::simulator::Simulator;

/// Effects rendered under one lock.
const PAGE: usize = 1000;

/// A list being sent: the effects from a place on that were there when it was asked for.
pub(crate) struct List {
    sim: Simulator,
    run: u64,
    next: usize,
    total: usize,
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
        let (run, total) = {
            let state = sim.state();
            (state.run, state.effects.entries.len())
        };
        List {
            sim,
            run,
            next: after.min(total),
            total,
            stage: Stage::Head,
        }
    }

    /// The next piece of the JSON text. A reset in mid-list cuts the list short: those effects are gone.
    pub(crate) fn next_chunk(&mut self) -> Option<Bytes> {
        let mut json = Json::with_capacity(64);
        let mut first = match self.stage {
            Stage::Done => return None,
            Stage::Data { first } => first,
            Stage::Head => {
                json.raw(r#"{"object":"list","total":"#);
                json.number(u64::try_from(self.total).unwrap_or(u64::MAX))
                    .raw(r#","data":["#);
                true
            }
        };
        let page_end = self.total.min(self.next.saturating_add(PAGE));
        {
            let state = self.sim.state();
            let page = if state.run == self.run {
                self.next..page_end
            } else {
                0..0
            };
            for effect in state.effects_in(page) {
                if !first {
                    json.raw(",\n");
                }
                first = false;
                effect.write(&mut json);
            }
        }
        self.next = page_end;
        self.stage = Stage::Data { first };
        if self.next == self.total {
            json.raw("]}");
            self.stage = Stage::Done;
        }
        debug_assert!(json.len() > 0, "an empty chunk would be sent as nothing at all");
        Some(json.into_bytes())
    }
}
