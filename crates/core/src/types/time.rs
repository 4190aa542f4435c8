//! Time as the store sees it: milliseconds since the Unix epoch. Nothing here reads a clock.

/// An instant of the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// Later than every instant of a store.
    pub const MAX: Time = Time(i64::MAX);
    /// The Unix epoch.
    pub const EPOCH: Time = Time(0);

    /// From milliseconds since the Unix epoch.
    pub const fn from_ms(ms: i64) -> Time {
        Time(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// The instant `span` later, saturated at [`Time::MAX`].
    pub const fn plus(self, span: Span) -> Time {
        Time(self.0.saturating_add_unsigned(span.0))
    }

    /// The instant `span` earlier.
    pub const fn minus(self, span: Span) -> Time {
        Time(self.0.saturating_sub_unsigned(span.0))
    }

    /// The time since `earlier`; zero if `earlier` is not earlier.
    pub const fn since(self, earlier: Time) -> Span {
        if self.0 <= earlier.0 { Span(0) } else { Span(self.0.abs_diff(earlier.0)) }
    }
}

impl Span {
    pub const ZERO: Span = Span(0);

    pub const fn from_ms(ms: u64) -> Span {
        Span(ms)
    }

    pub const fn ms(self) -> u64 {
        self.0
    }

    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// `numerator`/`denominator` of this length, rounded down; the whole length if the denominator
    /// is zero.
    pub const fn part(self, numerator: u64, denominator: u64) -> Span {
        match self.0.saturating_mul(numerator).checked_div(denominator) {
            Some(ms) => Span(ms),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_time_do_not_wrap() {
        assert_eq!(Time::MAX.plus(Span::from_ms(1)), Time::MAX);
        assert_eq!(Time::from_ms(i64::MIN).minus(Span::from_ms(1)), Time::from_ms(i64::MIN));
        assert_eq!(Time::from_ms(5).since(Time::from_ms(9)), Span::ZERO);
        assert_eq!(Time::MAX.since(Time::from_ms(i64::MIN)).ms(), u64::MAX);
    }
}
