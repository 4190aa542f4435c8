//! Faults of a cell.

use super::contract::Contract;
use std::time::Duration;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// Members of the provider's fault settings.
    odds: &'static str,
    /// Whether the server stays down until the provider has forgotten its keys.
    forgotten: bool,
    /// Whether the fault needs a provider that executes errors again or has no deduplication.
    reexecutes: bool,
    /// Whether the provider executes twice by itself.
    pub(super) by_itself: bool,
}

const NONE: Fault = Fault { name: "", odds: "", forgotten: false, reexecutes: false, by_itself: false };

pub(super) const FAULTS: [Fault; 9] = [
    Fault { name: "timeout after", odds: r#""hang_after":0.4"#, ..NONE },
    Fault { name: "5xx stored", odds: r#""error_before":0.2,"error_after":0.2,"store_errors":true"#, ..NONE },
    Fault {
        name: "5xx re-executed",
        odds: r#""error_before":0.1,"error_after":0.4"#,
        reexecutes: true,
        ..NONE
    },
    Fault { name: "keys forgotten", odds: r#""drop_after":0.5"#, forgotten: true, ..NONE },
    Fault {
        name: "query lag",
        odds: r#""drop_before":0.2,"drop_after":0.2,"error_after":0.2,"store_errors":true"#,
        ..NONE
    },
    Fault { name: "late delivery", odds: r#""drop_before":0.4,"late_delivery_ms":150"#, ..NONE },
    Fault { name: "other replay", odds: r#""drop_after":0.4,"other_replay":0.6"#, ..NONE },
    Fault { name: "wrong amount", odds: r#""wrong_amount":0.25"#, ..NONE },
    Fault { name: "executed twice", odds: r#""duplicate":0.3,"drop_after":0.3"#, by_itself: true, ..NONE },
];

impl Fault {
    /// Whether the provider's contract allows this fault.
    pub(super) fn applies_to(&self, contract: &Contract) -> bool {
        !self.reexecutes || contract.reexecutes || contract.window_ms.is_none()
    }

    /// The provider's fault settings in a cell.
    pub(super) fn faults(&self, contract: &Contract, seed: u64) -> String {
        // A stored error is not executed again.
        let usual = if self.odds.contains("store_errors") {
            contract.usual().replace(r#""forget_errors":true"#, r#""forget_errors":false"#)
        } else {
            contract.usual()
        };
        format!(r#"{{{usual},{},"seed":{seed}}}"#, self.odds)
    }

    /// Downtime of the server after its first kill.
    pub(super) fn away(&self, contract: &Contract) -> Duration {
        let ms = if self.forgotten { contract.window_ms.unwrap_or(0) + 500 } else { 0 };
        Duration::from_millis(ms)
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::CONTRACTS;
    use super::*;

    #[test]
    fn every_cell_has_readable_faults() {
        let mut befall = 0;
        for contract in &CONTRACTS {
            for fault in FAULTS {
                let faults = fault.faults(contract, 7);
                let read: serde_json::Value = serde_json::from_str(&faults).unwrap();
                assert_eq!(read["seed"], 7, "{faults}");
                assert!(!(read["store_errors"] == true && read["forget_errors"] == true), "{faults}");
                befall += usize::from(fault.applies_to(contract));
            }
        }
        assert_eq!(
            befall,
            12 * 8 + 4,
            "errors are executed again by three providers, and by one without memory"
        );
    }
}
