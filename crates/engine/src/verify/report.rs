//! What verification found.

/// One row per invariant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    findings: Vec<Finding>,
}

/// An invariant, what was looked at and what broke it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The invariant's name.
    pub invariant: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// How many things were looked at.
    pub looked_at: u64,
    /// How many break it.
    pub violations: u64,
    /// The first few that do.
    pub examples: Vec<String>,
}

/// Examples kept for each invariant.
const EXAMPLES_MAX: usize = 5;

/// Every invariant with its meaning, in the order they are shown.
pub(super) const INVARIANTS: [(&str, &str); 9] = [
    (
        "claim_has_work",
        "a claim that is not settled has its charge and its outbox row; a settled one has no work left",
    ),
    ("charge_agrees_with_claim", "a charge's status is the one its claim was settled with"),
    ("charge_has_claim", "a charge that is not settled has the claim that guards it"),
    ("work_has_charge", "an outbox row belongs to a charge that is not settled, and to its claim"),
    ("answer_is_whole", "a stored answer is readable and names its own charge and amount"),
    (
        "windows_in_order",
        "a tombstone ends no earlier than its replay window, and no claim is older than its answer",
    ),
    (
        "timeline_is_lawful",
        "a timeline begins with its claim, fences never fall, and it is settled once at most",
    ),
    ("provider_effect_is_single", "no two charges carry the same provider reference"),
    ("commits_are_dense", "commits are numbered without gaps and in the order of their times"),
];

impl Report {
    /// All findings, in a fixed order; an invariant that looked at nothing is listed too.
    pub fn findings(&self) -> Vec<Finding> {
        INVARIANTS.iter().map(|(invariant, meaning)| self.find(invariant, meaning)).collect()
    }

    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.violations == 0)
    }

    fn find(&self, invariant: &'static str, meaning: &'static str) -> Finding {
        let empty = Finding { invariant, meaning, looked_at: 0, violations: 0, examples: Vec::new() };
        self.findings.iter().find(|finding| finding.invariant == invariant).cloned().unwrap_or(empty)
    }

    /// Notes that an invariant was looked at; `broken` says how it does not hold.
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
