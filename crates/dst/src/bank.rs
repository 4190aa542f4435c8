//! The bug bank: mistakes planted on purpose, one at a time, to measure whether the checks find
//! them.
//!
//! The bugs sit around the engine (store, connector, world, frontend). From outside they look like
//! the same mistake inside the engine. A bug that is not found within the bound is a gap in the
//! checks or in the workload.
//!
//! Mistakes that the engine survives, as runs have shown, are left out:
//! - Work replaced at any revision: the claim in the same set guards the work.
//! - A commit reported as a conflict or as not written although it happened.
//! - A doubtful commit that is always reported as not committed: its own rows refuse the second
//!   one.
//! - A connector that sends another amount or captures a hold, and a lookup that finds another
//!   payment: both end as dead letters, as promised.

use crate::check::Violation;
use crate::draw::draw;
use crate::run::run;
use std::time::{Duration, Instant};

macro_rules! bugs {
    ($($name:ident $word:literal $what:literal),* $(,)?) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each is described by `what`")]
        pub enum Bug { $($name),* }

        /// Every bug.
        pub const BUGS: &[Bug] = &[$(Bug::$name),*];

        impl Bug {
            pub const fn name(self) -> &'static str {
                match self { $(Bug::$name => $word),* }
            }

            /// The mistake in one sentence.
            pub const fn what(self) -> &'static str {
                match self { $(Bug::$name => $what),* }
            }
        }
    };
}

bugs! {
    NoFence "no-fence" "a claim is replaced at any revision",
    ClaimOverwritten "claim-overwritten" "a claim is inserted over an existing one",
    FloorIgnored "floor-ignored" "a debit may pass the floor",
    CapIgnored "cap-ignored" "a credit may pass the cap",
    HoldsNotCounted "holds-not-counted" "held money may be spent again",
    ReversedTwice "reversed-twice" "a transaction is undone twice",
    CodeTwice "code-twice" "two accounts get one code",
    HoldEndsTwice "hold-ends-twice" "a hold ends at any revision",
    SlotShared "slot-shared" "two processes get one worker slot",
    TornWork "torn-work" "a claim is stored without its work",
    TornAudit "torn-audit" "a change is stored without its audit record",
    TornPosting "torn-posting" "a transaction is lost from its set",
    TornMoves "torn-moves" "balances do not move with their transaction",
    TornCharge "torn-charge" "the charge stays open though its claim is settled",
    TornWorkRemoval "torn-work-removal" "work stays after its claim is settled",
    TornClaim "torn-claim" "the answer is not stored with its effect",
    TornHold "torn-hold" "a hold is not stored with its reservation",
    MovedTwice "moved-twice" "a balance moves twice",
    LegsReversed "legs-reversed" "a transaction is stored with its sides exchanged",
    ReplyAltered "reply-altered" "a stored answer is altered",
    AmountAltered "amount-altered" "a charge is stored with another amount",
    AckWithoutCommit "ack-without-commit" "a commit is acknowledged and lost",
    LosesTail "loses-tail" "the last commit is lost in a failover",
    DoubtSaysYes "doubt-says-yes" "a doubtful commit is always said to have happened",
    PositionGap "position-gap" "positions are not dense",
    AnswersForgotten "answers-forgotten" "settled claims vanish before their window is over",
    StaleRead "stale-read" "reads come from a copy that lags",
    DueNever "due-never" "abandoned work is never found",
    HoldsNeverLapse "holds-never-lapse" "lapsed holds are never found",
    AgedEarly "aged-early" "answers are dropped before their window is over",
    FoldShort "fold-short" "a balance leaves the last entry out",
    SnapshotWrong "snapshot-wrong" "a snapshot is off by one unit",
    ClockJumps "clock-jumps" "leases and waits follow a wall clock that is set forward",
    ClockSkewed "clock-skewed" "each process has a different offset to the store's clock",
    ClockGoesBack "clock-goes-back" "the store's clock goes back",
    SpawnLost "spawn-lost" "a task is lost with its client",
    SleepForever "sleep-forever" "a worker never wakes up",
    ChanceStuck "chance-stuck" "random numbers are constant",
    KeyFresh "key-fresh" "every call has a different key",
    KeyConstant "key-constant" "all payments share one provider key",
    TimeoutIsNotSent "timeout-is-not-sent" "a timeout is taken for a request that never left",
    CutIsNotSent "cut-is-not-sent" "a cut connection is taken for a request that never left",
    ErrorIsDecline "error-is-decline" "a server error is taken for a decline",
    ErrorIsApproval "error-is-approval" "a server error is taken for an approval",
    UnreadableIsApproval "unreadable-is-approval" "an unreadable answer is taken for an approval",
    TimeoutIsRejected "timeout-is-rejected" "a timeout is taken for a rejection",
    UnclearIsNothing "unclear-is-nothing" "a lookup without answer is taken for `not found`",
    LagIgnored "lag-ignored" "`not found` is believed at once",
    LateIgnored "late-ignored" "late delivery is not waited for",
    WindowOverstated "window-overstated" "the provider is believed to remember keys longer than it does",
    ReexecutionDenied "reexecution-denied" "the provider is believed never to execute a key again",
    AmountEchoed "amount-echoed" "our own amount is taken for the provider's",
    CaptureEchoed "capture-echoed" "the requested state is taken for the provider's",
    EndpointNotPinned "endpoint-not-pinned" "a payment is repeated at another endpoint",
    CallHedged "call-hedged" "a slow call is sent again under a second key",
    SendsLate "sends-late" "a connector that slept sends after its deadline",
    ReplyBeforeCommit "reply-before-commit" "a pending outcome is answered as success",
    PendingIsFailure "pending-is-failure" "a pending outcome is answered as failure",
    ReplayRewritten "replay-rewritten" "a replay is rendered again",
    FingerprintIgnored "fingerprint-ignored" "another request under the key gets the first one's answer",
    KeyWithoutTenant "key-without-tenant" "two tenants share their keys",
    KeyForgotten "key-forgotten" "a retry is taken for a new request",
    NeverAnswers "never-answers" "a waiting request is never woken",
    InUseForever "in-use-forever" "a retry gets `in use` in every state of the claim",
    TenantIgnored "tenant-ignored" "a read shows another tenant's charge",
    BalanceOld "balance-old" "a balance is served from an old cache",
    VoidUnderChargeKey "void-under-charge-key" "a void is sent under the key of the charge",
    CaptureKeyFresh "capture-key-fresh" "a capture is sent again under a new key",
    RefundKeyFresh "refund-key-fresh" "a refund is sent again under a new key",
    RefundKeyShared "refund-key-shared" "all refunds of a charge share one key",
    CaptureInFull "capture-in-full" "a part is asked for and everything is captured",
    VoidBelieved "void-believed" "what was held is believed to be given up and is not",
    VoidLater "void-later" "the wallet is free before the card is",
    VoidUnknownIsDone "void-unknown-is-done" "a void without answer is taken for done",
    CaptureUnknownIsFailure "capture-unknown-is-failure" "a capture without answer is taken for refused",
    RefundUnknownIsFailure "refund-unknown-is-failure" "a refund without answer is taken for refused",
    HeldIsDeclined "held-is-declined" "a payment that still stands where it stood is taken for declined",
    RefundNotReserved "refund-not-reserved" "what is being given back is not counted",
    RefundNotCounted "refund-not-counted" "what was given back is not counted",
    RefundUnposted "refund-unposted" "a refund is completed without its posting",
    WalletKept "wallet-kept" "a split fails and its wallet stays reserved",
    ParkedForgotten "parked-forgotten" "work is removed when it is parked",
    TornOperation "torn-operation" "an operation stays open though its claim is settled",
    WorkingStays "working-stays" "a charge stays in the hands of an operation that has ended",
    PayoutKeyFresh "payout-key-fresh" "a payout is sent again under a new key",
    PayoutUnknownIsFailure "payout-unknown-is-failure" "a payout without answer is taken for refused",
    PayoutUnknownIsDone "payout-unknown-is-done" "a payout without answer is taken for paid",
    PayoutLateIsDeclined "payout-late-is-declined" "a payout that takes long is taken for declined by the bank",
    PayoutOverdraws "payout-overdraws" "two payouts read one balance and both take it",
    PayoutUnposted "payout-unposted" "a payout is paid without its posting",
    PayoutKept "payout-kept" "a payout fails and its money stays reserved",
    TornPayout "torn-payout" "a payout stays open though its claim is settled",
    OutageIsFailure "outage-is-failure" "a store outage is answered as a failed charge",
}

impl Bug {
    pub fn parse(name: &str) -> Option<Bug> {
        BUGS.iter().copied().find(|bug| bug.name() == name)
    }
}

/// The run in which a bug was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Number of seeds run until then.
    pub seeds: u64,
    pub violation: Violation,
    pub took: Duration,
}

/// Looks for a planted bug in at most `bound` seeds.
pub fn hunt(bug: Bug, first: u64, bound: u64) -> Option<Hit> {
    let begun = Instant::now();
    (first..first.saturating_add(bound)).zip(1..).find_map(|(seed, seeds)| {
        let violation = run(&draw(seed, None), Some(bug)).violations.into_iter().next()?;
        Some(Hit { seeds, violation, took: begun.elapsed() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bank_has_at_least_eighty_bugs_with_unique_names() {
        let names: std::collections::BTreeSet<_> = BUGS.iter().map(|bug| bug.name()).collect();
        assert!(names.len() == BUGS.len() && BUGS.len() >= 80, "{}", BUGS.len());
    }
}
