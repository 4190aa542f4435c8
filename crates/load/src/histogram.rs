//! Latencies in a log-linear histogram: integers only, fixed size, mergeable.
//!
//! Values below 128 ns are exact. Above, each power of two is split into 128 buckets, so a bucket
//! is narrower than 1/128 of its values. A percentile is the upper edge of its bucket: at most 0.8
//! % too slow, never too fast, and never above the maximum, which is kept exactly.

use std::time::Duration;

const SPLIT_BITS: u32 = 7;
const SPLIT: u64 = 1 << SPLIT_BITS;
/// Longer than any run waits for an answer (about 137 s in nanoseconds); greater values share the
/// last bucket.
const VALUE_BITS: u32 = 37;
const BUCKETS: usize = ((VALUE_BITS - SPLIT_BITS + 1) as usize) << SPLIT_BITS;

/// Counts of latencies by size.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS].into_boxed_slice(), count: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Counts a latency.
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[index(ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of counted latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact maximum in microseconds.
    pub fn max_us(&self) -> u64 {
        to_us(self.max_ns)
    }

    /// The percentile in microseconds: 500 is the median, 999 is p99.9. Zero if nothing was
    /// counted.
    pub fn percentile_us(&self, permille: u16) -> u64 {
        to_us(self.percentile_ns(permille))
    }

    fn percentile_ns(&self, permille: u16) -> u64 {
        let rank = (u128::from(self.count) * u128::from(permille)).div_ceil(1000).max(1);
        let mut seen = 0_u128;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return upper_edge(index).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

fn index(ns: u64) -> usize {
    let ns = ns.min((1 << VALUE_BITS) - 1);
    let bucket = if ns < SPLIT {
        ns
    } else {
        let shift = ns.ilog2() - SPLIT_BITS;
        // The leading bit of `ns >> shift` is always set, so the octave counts from its shift, not
        // shift + 1.
        (u64::from(shift) << SPLIT_BITS) + (ns >> shift)
    };
    usize::try_from(bucket).unwrap_or(BUCKETS - 1)
}

/// The greatest value of the bucket.
fn upper_edge(index: usize) -> u64 {
    let index = index as u64;
    if index < SPLIT {
        return index;
    }
    if index == BUCKETS as u64 - 1 {
        // Values above the range are here too; only the caller's maximum limits them.
        return u64::MAX;
    }
    let shift = (index >> SPLIT_BITS) - 1;
    let lower = (SPLIT + (index & (SPLIT - 1))) << shift;
    lower + (1 << shift) - 1
}

fn to_us(ns: u64) -> u64 {
    ns.saturating_add(500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for ns in values {
            histogram.record(Duration::from_nanos(*ns));
        }
        histogram
    }

    fn exact(values: &[u64], permille: u16) -> u64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = (sorted.len() * usize::from(permille)).div_ceil(1000).max(1);
        sorted[rank - 1]
    }

    /// All octaves are equally likely, so that rare sizes occur.
    fn latency() -> impl Strategy<Value = u64> {
        (0..VALUE_BITS).prop_flat_map(|bits| 0..(2_u64 << bits))
    }

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for bucket in 0..BUCKETS - 1 {
            let edge = upper_edge(bucket);
            assert_eq!(index(edge), bucket);
            assert_eq!(index(edge + 1), bucket + 1);
        }
        assert_eq!(index(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn simple_cases_are_exact() {
        assert_eq!(filled(&[]).percentile_us(500), 0);
        let thousand: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
        let histogram = filled(&thousand);
        assert_eq!(histogram.max_us(), 1000);
        assert_eq!(histogram.percentile_us(1000), 1000);
        assert!((500..=504).contains(&histogram.percentile_us(500)));
        assert!((990..=998).contains(&histogram.percentile_us(990)));
        let endless = filled(&[u64::MAX]);
        assert_eq!(endless.percentile_ns(500), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_percentile_is_at_most_one_percent_too_slow(
            values in prop::collection::vec(latency(), 1..400),
            permille in 0..=1000_u16,
        ) {
            let truth = exact(&values, permille);
            let told = filled(&values).percentile_ns(permille);
            prop_assert!(told >= truth);
            prop_assert!((told - truth) * 100 <= truth, "{told} for {truth}");
        }

        #[test]
        fn merging_is_recording_both(
            left in prop::collection::vec(latency(), 0..100),
            right in prop::collection::vec(latency(), 0..100),
        ) {
            let mut merged = filled(&left);
            merged.merge(&filled(&right));
            let both = filled(&[left, right].concat());
            prop_assert_eq!(&merged.buckets, &both.buckets);
            prop_assert_eq!(merged.count(), both.count());
            prop_assert_eq!(merged.max_us(), both.max_us());
        }
    }
}
