//! Object ids: a Stripe prefix, a run number, and a running number.
//!
//! With the run number a restarted or reset simulator never repeats an id that a client has stored,
//! and an id of an earlier run is unknown.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const INTENT: &str = "pi_";
/// A charge shares the number of its intent.
pub(crate) const CHARGE: &str = "ch_";
pub(crate) const REFUND: &str = "re_";
pub(crate) const PAYOUT: &str = "po_";
pub(crate) const REQUEST: &str = "req_";

const RUN_DIGITS: usize = 12;
const NUMBER_DIGITS: usize = 8;

/// A run number greater than every earlier one of this process, and of earlier processes as far as
/// clocks agree.
pub(crate) fn next_run(now_ms: u64) -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    now_ms.saturating_add(RUNS.fetch_add(1, Ordering::Relaxed)) & 0xffff_ffff_ffff
}

/// Appends `prefix`, 12 hex digits of run and 8 of number.
pub(crate) fn push(out: &mut Vec<u8>, prefix: &str, run: u64, number: u32) {
    out.extend_from_slice(prefix.as_bytes());
    push_hex(out, run, RUN_DIGITS);
    push_hex(out, u64::from(number), NUMBER_DIGITS);
}

/// The id as a string.
pub(crate) fn text(prefix: &str, run: u64, number: u32) -> String {
    format!("{prefix}{run:012x}{number:08x}")
}

/// The number in an id of this run. `None` for any other text.
pub(crate) fn number(id: &str, prefix: &str, run: u64) -> Option<u32> {
    let digits = id.strip_prefix(prefix)?;
    let well_formed = digits.len() == RUN_DIGITS + NUMBER_DIGITS
        && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !well_formed {
        return None;
    }
    let (run_digits, number_digits) = digits.split_at(RUN_DIGITS);
    if u64::from_str_radix(run_digits, 16) != Ok(run) {
        return None;
    }
    u32::from_str_radix(number_digits, 16).ok()
}

fn push_hex(out: &mut Vec<u8>, value: u64, digits: usize) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for place in (0..digits).rev() {
        out.push(HEX[(value >> (4 * place) & 0xf) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::{INTENT, number, push, text};

    #[test]
    fn an_id_reads_back_in_its_own_run_only() {
        let id = text(INTENT, 0x0198_1234_abcd, 42);
        assert_eq!(id, "pi_01981234abcd0000002a");
        let mut pushed = Vec::new();
        push(&mut pushed, INTENT, 0x0198_1234_abcd, 42);
        assert_eq!(pushed, id.as_bytes());
        assert_eq!(number(&id, INTENT, 0x0198_1234_abcd), Some(42));
        assert_eq!(number(&id, INTENT, 0x0198_1234_abce), None);
    }

    #[test]
    fn foreign_and_broken_ids_are_unknown() {
        for id in [
            "",
            "pi_",
            "ch_01981234abcd0000002a",
            "pi_01981234ABCD0000002a",
            "pi_+1981234abcd0000002a",
            "pi_é",
        ] {
            assert_eq!(number(id, INTENT, 0x0198_1234_abcd), None, "{id}");
        }
    }
}
