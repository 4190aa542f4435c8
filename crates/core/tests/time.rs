//! Instants and lengths of time: sums, differences, parts.

use counterfoil_core::types::time::{Span, Time};

#[test]
fn instants_move_by_lengths_of_time() {
    let noon = Time::from_ms(43_200_000);
    assert_eq!(noon.ms(), 43_200_000);
    assert_eq!(noon.plus(Span::from_ms(5)), Time::from_ms(43_200_005));
    assert_eq!(noon.minus(Span::from_ms(5)), Time::from_ms(43_199_995));
    assert_eq!(Time::EPOCH.minus(Span::from_ms(5)), Time::from_ms(-5));
    assert_eq!(noon.plus(Span::from_ms(u64::MAX)), Time::MAX);
}

#[test]
fn the_time_between_two_instants_is_never_negative() {
    assert_eq!(Time::from_ms(9).since(Time::from_ms(5)), Span::from_ms(4));
    assert_eq!(Time::from_ms(5).since(Time::from_ms(5)), Span::ZERO);
    assert_eq!(Time::from_ms(5).since(Time::from_ms(-5)), Span::from_ms(10));
    assert_eq!(Time::from_ms(4).since(Time::from_ms(5)), Span::ZERO);
}

#[test]
fn lengths_add_up_and_have_parts() {
    assert_eq!(Span::from_ms(7).ms(), 7);
    assert_eq!(Span::from_ms(7).plus(Span::from_ms(5)), Span::from_ms(12));
    assert_eq!(Span::from_ms(u64::MAX).plus(Span::from_ms(1)), Span::from_ms(u64::MAX));
    assert_eq!(Span::from_ms(30).part(1, 3), Span::from_ms(10));
    assert_eq!(Span::from_ms(31).part(2, 3), Span::from_ms(20));
    assert_eq!(Span::from_ms(31).part(1, 0), Span::from_ms(31));
}
