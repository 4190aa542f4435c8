//! Fault injection: the configured faults, and the seeded stream that decides which request meets
//! one.

use super::{BadFaults, Faults};
use counterfoil_prng::Prng;

/// The seed if the settings name none.
const SEED: u64 = 0x00c0_ffee;

pub(crate) struct FaultInjector {
    faults: Faults,
    prng: Prng,
    /// A separate stream, so that retries do not shift the draws of executed requests.
    replay_prng: Prng,
}

/// The faults of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) before: Before,
    pub(crate) twice: bool,
    pub(crate) after: After,
    pub(crate) wrong_amount: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Execute,
    /// Cut the connection.
    Drop,
    /// Answer 500.
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Answer,
    /// Never answer.
    Hang,
    /// Cut the connection.
    Drop,
    /// Answer 500.
    Error,
}

impl Default for FaultInjector {
    fn default() -> Self {
        FaultInjector { faults: Faults::default(), prng: Prng::new(SEED), replay_prng: Prng::new(!SEED) }
    }
}

impl FaultInjector {
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Replaces the settings and restarts both streams.
    pub(crate) fn set(&mut self, faults: Faults) -> Result<(), BadFaults> {
        faults.check()?;
        let seed = faults.seed.unwrap_or(SEED);
        self.prng = Prng::new(seed);
        self.replay_prng = Prng::new(!seed);
        self.faults = faults;
        Ok(())
    }

    /// Decides whether one replay gets another body than the first answer.
    pub(crate) fn replays_otherwise(&mut self) -> bool {
        happens(&mut self.replay_prng, self.faults.other_replay)
    }

    /// Decides the faults of a request. Every odds value draws every time, so changing one leaves
    /// the others' draws alone.
    pub(crate) fn plan(&mut self) -> Plan {
        let FaultInjector { faults, prng, .. } = self;
        let drop_before = happens(prng, faults.drop_before);
        let error_before = happens(prng, faults.error_before);
        let twice = happens(prng, faults.duplicate);
        let hang_after = happens(prng, faults.hang_after);
        let drop_after = happens(prng, faults.drop_after);
        let error_after = happens(prng, faults.error_after);
        let wrong_amount = happens(prng, faults.wrong_amount);
        let before = match (drop_before, error_before) {
            (true, _) => Before::Drop,
            (false, true) => Before::Error,
            (false, false) => Before::Execute,
        };
        let after = match (hang_after, drop_after, error_after) {
            (true, _, _) => After::Hang,
            (false, true, _) => After::Drop,
            (false, false, true) => After::Error,
            (false, false, false) => After::Answer,
        };
        Plan { before, twice, after, wrong_amount }
    }
}

/// True with the given odds from 0 (never) to 1 (always).
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "odds are chances, not money")]
fn happens(prng: &mut Prng, odds: f64) -> bool {
    // The upper 53 bits fill a float from 0 to 1, 1 excluded, without rounding.
    let drawn = (prng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    drawn < odds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_hold_at_the_ends_and_between() {
        let mut prng = Prng::new(7);
        assert!((0..1000).all(|_| happens(&mut prng, 1.0)));
        assert!((0..1000).all(|_| !happens(&mut prng, 0.0)));
        let often = (0..10_000).filter(|_| happens(&mut prng, 0.25)).count();
        assert!((2300..2700).contains(&often), "{often}");
    }

    #[test]
    fn default_settings_inject_no_faults() {
        let mut injector = FaultInjector::default();
        let plan = Plan { before: Before::Execute, twice: false, after: After::Answer, wrong_amount: false };
        assert!((0..1000).all(|_| injector.plan() == plan && !injector.replays_otherwise()));
    }

    #[test]
    fn a_seed_repeats_its_faults_and_odds_do_not_disturb_each_other() {
        let story = |faults: Faults| {
            let mut injector = FaultInjector::default();
            injector.set(faults).unwrap();
            (0..200).map(|_| injector.plan()).collect::<Vec<_>>()
        };
        let seeded = |seed| Faults { error_after: 0.5, seed: Some(seed), ..Faults::default() };
        assert_eq!(story(seeded(1)), story(seeded(1)));
        assert_ne!(story(seeded(1)), story(seeded(2)));
        let after = |plans: Vec<Plan>| plans.into_iter().map(|plan| plan.after).collect::<Vec<_>>();
        let with_more = Faults { drop_before: 0.3, duplicate: 0.2, ..seeded(1) };
        assert_eq!(after(story(seeded(1))), after(story(with_more)));
    }
}
