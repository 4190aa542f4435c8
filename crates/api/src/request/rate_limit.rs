//! Rate limits of tenants: the generic cell rate algorithm, on the store's clock.
//!
//! The algorithm stores one number per tenant, the theoretical arrival time of the next request. A
//! request is admitted if that time is at most the burst ahead of now. [`Rate`] is pure.

use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::time::{Span, Time};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const NS_PER_SECOND: i128 = 1_000_000_000;
const NS_PER_MS: i128 = 1_000_000;
/// Most tenants remembered at once. Tenants with a full allowance are forgotten first, which does
/// not change any decision.
const TENANTS_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    interval_ns: i128,
    ahead_max_ns: i128,
}

impl Rate {
    /// `None` if the rate is 0, which means no limit. A burst of 0 means the same as the rate.
    pub(crate) fn new(per_second: u32, burst: u32) -> Option<Rate> {
        if per_second == 0 {
            return None;
        }
        let burst = if burst == 0 { per_second } else { burst };
        let interval_ns = NS_PER_SECOND / i128::from(per_second);
        Some(Rate { interval_ns, ahead_max_ns: interval_ns * i128::from(burst - 1) })
    }

    /// The next arrival time after admitting a request now, or the time to wait.
    fn admit(self, arrival_ns: i128, now_ns: i128) -> Result<i128, Span> {
        let arrival = arrival_ns.max(now_ns);
        let excess = arrival - now_ns - self.ahead_max_ns;
        if excess <= 0 {
            return Ok(arrival + self.interval_ns);
        }
        // Rounded up, so that a client that waits exactly this long is admitted.
        let wait_ms = (excess + NS_PER_MS - 1) / NS_PER_MS;
        Err(Span::from_ms(u64::try_from(wait_ms).unwrap_or(u64::MAX)))
    }
}

#[derive(Debug)]
pub(crate) struct RateLimiter {
    rate: Rate,
    arrivals_ns: Mutex<HashMap<i64, i128>>,
}

impl RateLimiter {
    pub(crate) fn new(rate: Rate) -> RateLimiter {
        RateLimiter { rate, arrivals_ns: Mutex::new(HashMap::new()) }
    }

    /// Admits a request of `tenant`, or returns the time to wait.
    pub(crate) fn admit(&self, tenant: TenantId, now: Time) -> Result<(), Span> {
        let now_ns = i128::from(now.ms()) * NS_PER_MS;
        // The lock guards plain numbers, which a panicking thread cannot leave half written.
        let mut arrivals = self.arrivals_ns.lock().unwrap_or_else(PoisonError::into_inner);
        if arrivals.len() >= TENANTS_MAX && !arrivals.contains_key(&tenant.to_i64()) {
            arrivals.retain(|_, arrival| *arrival > now_ns);
            if arrivals.len() >= TENANTS_MAX {
                return Err(Span::from_ms(1_000));
            }
        }
        let arrival = arrivals.entry(tenant.to_i64()).or_insert(now_ns);
        *arrival = self.rate.admit(*arrival, now_ns)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACME: TenantId = TenantId::from_i64(1);
    const OTHER: TenantId = TenantId::from_i64(2);

    fn at(ms: i64) -> Time {
        Time::from_ms(ms)
    }

    fn admitted(limiter: &RateLimiter, ms: i64, tries: usize) -> usize {
        (0..tries).filter(|_| limiter.admit(ACME, at(ms)).is_ok()).count()
    }

    #[test]
    fn a_burst_is_admitted_and_then_the_rate() {
        let limiter = RateLimiter::new(Rate::new(10, 3).unwrap());
        assert_eq!(admitted(&limiter, 0, 10), 3);
        assert_eq!(limiter.admit(ACME, at(0)), Err(Span::from_ms(100)));
        assert_eq!(limiter.admit(ACME, at(99)), Err(Span::from_ms(1)));
        assert_eq!(admitted(&limiter, 100, 10), 1);
        assert_eq!(admitted(&limiter, 10_000, 10), 3, "idle time restores the burst and no more");
        assert_eq!(limiter.admit(OTHER, at(0)), Ok(()), "tenants have separate limits");
    }

    #[test]
    fn the_long_run_average_is_the_rate() {
        for rate in [1, 7, 1_000, 5_000] {
            let limiter = RateLimiter::new(Rate::new(rate, 1).unwrap());
            let admitted: usize = (0..10_000).map(|ms| admitted(&limiter, ms, 10)).sum();
            // The clock ticks in milliseconds, so a burst of 1 admits at most one request per tick.
            let expected = usize::try_from(rate.min(1_000)).unwrap() * 10;
            assert!(admitted.abs_diff(expected) <= expected / 5 + 1, "{rate}: {admitted}");
        }
    }

    #[test]
    fn the_named_wait_is_long_enough() {
        let limiter = RateLimiter::new(Rate::new(3, 1).unwrap());
        let mut now = at(0);
        for _ in 0..1_000 {
            if let Err(wait) = limiter.admit(ACME, now) {
                now = now.plus(wait);
                assert_eq!(limiter.admit(ACME, now), Ok(()));
            }
        }
    }

    #[test]
    fn a_rate_of_zero_means_no_limit() {
        assert_eq!(Rate::new(0, 5), None);
        let limiter = RateLimiter::new(Rate::new(5, 0).unwrap());
        assert_eq!(admitted(&limiter, 0, 10), 5);
    }
}
