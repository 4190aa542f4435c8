//! Planted lies: each must be found, and only it.

use super::super::told::tests::told;
use super::*;

fn charge(number: u64, first: Option<Told>) -> Charge {
    Charge { key: format!("key-{number}"), amount: 100 + number, declined: false, first }
}

fn made(number: u64) -> Charge {
    let body = format!(r#"{{"id":"ch_{number}","amount":{}}}"#, 100 + number);
    charge(number, Some(told(201, &body)))
}

fn refused(number: u64) -> Charge {
    let refusal = told(402, &format!(r#"{{"charge":"ch_{number}"}}"#));
    Charge { declined: true, ..charge(number, Some(refusal)) }
}

fn effect(number: u64) -> Effect {
    Effect { key: Some(format!("k{number}")), payment: Some(format!("ch_{number}")), amount: 100 + number }
}

fn wrongs(charges: &[Charge], effects: &[Effect]) -> Vec<Wrong> {
    let verdict = judge(charges, effects);
    assert_eq!(verdict.is_clean(), verdict.counts.is_empty() && verdict.examples.is_empty());
    verdict.counts.into_keys().collect()
}

#[test]
fn an_honest_history_is_clean() {
    assert!(wrongs(&[made(1), refused(2), made(3)], &[effect(3), effect(1)]).is_empty());
    assert!(wrongs(&[], &[]).is_empty());
}

#[test]
fn two_effects_of_one_payment() {
    let other_key = Effect { key: Some("k9".into()), ..effect(1) };
    assert_eq!(wrongs(&[made(1)], &[effect(1), other_key]), [Wrong::Double]);
}

#[test]
fn two_effects_of_one_key_at_the_provider() {
    let same_key = Effect { key: Some("k1".into()), ..effect(2) };
    assert_eq!(wrongs(&[made(1), made(2)], &[effect(1), same_key]), [Wrong::Double]);
}

#[test]
fn a_success_without_effect() {
    assert_eq!(wrongs(&[made(1), made(2)], &[effect(2)]), [Wrong::Unpaid]);
}

#[test]
fn a_refusal_with_an_effect() {
    assert_eq!(wrongs(&[refused(1)], &[effect(1)]), [Wrong::PaidRefusal]);
}

#[test]
fn another_amount_at_the_provider_or_in_the_answer() {
    let wrong = Effect { amount: 7, ..effect(1) };
    assert_eq!(wrongs(&[made(1)], &[wrong]), [Wrong::Amount]);
    let answered = charge(1, Some(told(201, r#"{"id":"ch_1","amount":7}"#)));
    assert_eq!(wrongs(&[answered], &[effect(1)]), [Wrong::Amount]);
}

#[test]
fn a_key_without_an_answer_and_an_effect_nobody_was_told_of() {
    assert_eq!(wrongs(&[charge(1, None)], &[]), [Wrong::Unanswered]);
    assert_eq!(wrongs(&[made(1)], &[effect(1), effect(2)]), [Wrong::Unexplained]);
    let nameless = Effect { payment: None, ..effect(2) };
    assert_eq!(wrongs(&[made(1)], &[effect(1), nameless]), [Wrong::Unexplained]);
}

#[test]
fn two_keys_with_one_charge() {
    let twin = Charge { key: "key-9".into(), ..made(1) };
    assert_eq!(wrongs(&[made(1), twin], &[effect(1)]), [Wrong::Mistaken]);
    assert_eq!(wrongs(&[charge(1, Some(told(201, "{}")))], &[]), [Wrong::Mistaken]);
}

#[test]
fn a_declined_card_that_succeeds() {
    let lucky = Charge { declined: true, ..made(1) };
    assert_eq!(wrongs(&[lucky], &[effect(1)]), [Wrong::Strange]);
}

#[test]
fn replays_are_the_same_or_differ_or_are_lost() {
    let first = told(201, "a");
    assert_eq!(Replay::of(&first, Some(&told(201, "a"))), Replay::Same);
    assert_eq!(Replay::of(&first, Some(&told(201, "b"))), Replay::Differs);
    assert_eq!(Replay::of(&first, Some(&told(402, "a"))), Replay::Differs);
    assert_eq!(Replay::of(&first, None), Replay::Lost);
}

#[test]
fn every_kind_is_reported_once() {
    for (index, (wrong, _)) in WRONGS.iter().enumerate() {
        assert!(!WRONGS[..index].iter().any(|(earlier, _)| earlier == wrong));
    }
    // `Strange` is the last kind: a new one needs its line above.
    assert_eq!(WRONGS.len(), Wrong::Strange as usize + 1);
}
