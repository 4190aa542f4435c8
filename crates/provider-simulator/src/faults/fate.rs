//! What the faults in force do to the next request.

use super::dice::Dice;
use super::{BadFaults, Faults};

/// Where the dice start when no seed is set.
const SEED: u64 = 0x00c0_ffee;

/// The faults in force and their dice.
pub(crate) struct NextStep {
    faults: Faults,
    dice: Dice,
    /// Of their own, so that retries do not move the throws of what is executed.
    of_replays: Dice,
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) before: Before,
    pub(crate) twice: bool,
    pub(crate) after: After,
    /// The answer names another amount.
    pub(crate) wrong_amount: bool,
}

/// Before executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// Go on.
    Execute,
    /// Cut the connection.
    Drop,
    /// Answer 500.
    Error,
}

/// After executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// Answer truthfully.
    Answer,
    /// Never answer.
    Hang,
    /// Cut the connection.
    Drop,
    /// Answer 500.
    Error,
}

impl Default for NextStep {
    fn default() -> Self {
        NextStep { faults: Faults::default(), dice: Dice::new(SEED), of_replays: Dice::new(!SEED) }
    }
}

impl NextStep {
    /// The settings in force.
    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Puts settings in force and starts the dice anew.
    pub(crate) fn set(&mut self, faults: Faults) -> Result<(), BadFaults> {
        faults.check()?;
        let seed = faults.seed.unwrap_or(SEED);
        self.dice = Dice::new(seed);
        self.of_replays = Dice::new(!seed);
        self.faults = faults;
        Ok(())
    }

    /// Throws for one replay: whether it is another body.
    pub(crate) fn replays_otherwise(&mut self) -> bool {
        self.of_replays.comes_up(self.faults.other_replay)
    }

    /// Throws for one request. Every die is thrown every time, so that changing one of the odds does not move
    /// the others' throws.
    pub(crate) fn decide(&mut self) -> Plan {
        let NextStep { faults, dice, .. } = self;
        let drop_before = dice.comes_up(faults.drop_before);
        let error_before = dice.comes_up(faults.error_before);
        let twice = dice.comes_up(faults.duplicate);
        let hang_after = dice.comes_up(faults.hang_after);
        let drop_after = dice.comes_up(faults.drop_after);
        let error_after = dice.comes_up(faults.error_after);
        let wrong_amount = dice.comes_up(faults.wrong_amount);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_faults_is_no_faults() {
        let mut fate = NextStep::default();
        let plan = Plan { before: Before::Execute, twice: false, after: After::Answer, wrong_amount: false };
        assert!((0..1000).all(|_| fate.decide() == plan && !fate.replays_otherwise()));
    }

    #[test]
    fn one_seed_is_one_story_and_odds_do_not_disturb_each_other() {
        let story = |faults: Faults| {
            let mut fate = NextStep::default();
            fate.set(faults).unwrap();
            (0..200).map(|_| fate.decide()).collect::<Vec<_>>()
        };
        let seeded = |seed| Faults { error_after: 0.5, seed: Some(seed), ..Faults::default() };
        assert_eq!(story(seeded(1)), story(seeded(1)));
        assert_ne!(story(seeded(1)), story(seeded(2)));
        let after = |plans: Vec<Plan>| plans.into_iter().map(|plan| plan.after).collect::<Vec<_>>();
        let with_more = Faults { drop_before: 0.3, duplicate: 0.2, ..seeded(1) };
        assert_eq!(after(story(seeded(1))), after(story(with_more)));
    }
}
