//! The report of a verification.

/// One finding per invariant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    findings: Vec<Finding>,
}

/// An invariant and its violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub invariant: &'static str,
    /// The invariant as a sentence.
    pub meaning: &'static str,
    /// Number of checked things.
    pub looked_at: u64,
    pub violations: u64,
    /// The first violations.
    pub examples: Vec<String>,
}

/// Examples kept for each invariant.
const EXAMPLES_MAX: usize = 5;

/// Every invariant and its meaning, in the order of the report.
pub(super) const INVARIANTS: [(&str, &str); 28] = [
    ("key_has_one_record", "an idempotency key has one record"),
    (
        "claim_has_work",
        "a claim that is not settled has what it makes and its outbox row; a settled one has no work left",
    ),
    ("charge_agrees_with_claim", "a charge's status is the one its claim was settled with"),
    ("charge_has_claim", "a charge that is not settled has the claim that guards it"),
    (
        "work_has_payment",
        "an outbox row belongs to a charge or a payout and its provider; one that makes it fits its order, claim and status",
    ),
    ("answer_is_whole", "a stored answer is readable and names its own charge, refund or payout, and amount"),
    (
        "windows_in_order",
        "a tombstone ends no earlier than its replay window, and no claim is older than its answer",
    ),
    (
        "timeline_is_lawful",
        "a timeline begins with its claim, fences never fall, and it is settled once at most",
    ),
    ("provider_effect_is_single", "no two charges, and no two payouts, carry the same provider reference"),
    (
        "operations_add_up",
        "a charge's sums, status and lock are what its operations come to: one capture or void at most, refunds within it",
    ),
    (
        "operation_has_work",
        "an operation that has not ended has its charge, claim and outbox row; one that has ended has no work left",
    ),
    (
        "refunds_are_posted",
        "a refund's amount is reserved under its number until it ends: then posted whole, or freed if it failed",
    ),
    (
        "payout_has_work",
        "a payout that has not ended has its claim and outbox row; one that has ended has no work left",
    ),
    (
        "payouts_are_posted",
        "a payout's amount is reserved under its number until it ends: then posted whole, once, or freed if it failed",
    ),
    (
        "holds_of_payments_have_work",
        "what a payment holds reserved is named by one outbox row, and what an outbox row names is reserved",
    ),
    ("commits_are_dense", "commits are numbered without gaps and in the order of their times"),
    (
        "journal_balances",
        "every transaction has two legs or more, of lawful amounts, that sum to zero per asset and layer",
    ),
    (
        "ledger_sums_to_zero",
        "all accounts of an asset together sum to zero after every commit, and so do their own histories",
    ),
    ("entries_fit_accounts", "every leg's account exists, counts the leg's asset and is of the same tenant"),
    ("entries_match_journal", "an account's own history adds up to its legs in the journal"),
    (
        "balances_match_entries",
        "a guarded account's shards add up to its entries and to its floor and cap; no other account has any",
    ),
    (
        "guards_hold_at_every_prefix",
        "no commit took an account below its floor or above its cap, nor further beyond",
    ),
    ("snapshots_match_entries", "a snapshot is what the account's entries add up to at its position"),
    (
        "holds_match_journal",
        "a hold has its reservation and at most one end, of its amounts; what is reserved is what open holds hold",
    ),
    ("reversals_mirror", "a reversal mirrors what its transaction posted, and there is one at most"),
    (
        "charges_are_posted_once",
        "every captured charge has the one transaction of its number, amount and accounts, and no other has one",
    ),
    (
        "wallets_pay_with_the_card",
        "a wallet's part is posted whole in the commit that posts the card's, and in no other",
    ),
    ("account_names", "a code names the account that bears it, and every account's code names it"),
];

impl VerifyReport {
    /// All findings in a fixed order, including invariants that checked nothing.
    pub fn findings(&self) -> Vec<Finding> {
        INVARIANTS.iter().map(|(invariant, meaning)| self.find(invariant, meaning)).collect()
    }

    /// Whether every invariant holds.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.violations == 0)
    }

    fn find(&self, invariant: &'static str, meaning: &'static str) -> Finding {
        let empty = Finding { invariant, meaning, looked_at: 0, violations: 0, examples: Vec::new() };
        self.findings.iter().find(|finding| finding.invariant == invariant).cloned().unwrap_or(empty)
    }

    /// Notes one check of an invariant. `broken` describes the violation.
    pub(super) fn note(&mut self, invariant: &'static str, broken: Option<String>) {
        let at =
            self.findings.iter().position(|finding| finding.invariant == invariant).unwrap_or_else(|| {
                let finding =
                    Finding { invariant, meaning: "", looked_at: 0, violations: 0, examples: Vec::new() };
                self.findings.push(finding);
                self.findings.len().saturating_sub(1)
            });
        let meaning =
            INVARIANTS.iter().find(|(name, _)| *name == invariant).map_or("", |(_, meaning)| *meaning);
        let Some(finding) = self.findings.get_mut(at) else {
            return;
        };
        finding.meaning = meaning;
        finding.looked_at = finding.looked_at.saturating_add(1);
        if let Some(example) = broken {
            finding.violations = finding.violations.saturating_add(1);
            if finding.examples.len() < EXAMPLES_MAX {
                finding.examples.push(example);
            }
        }
    }
}
