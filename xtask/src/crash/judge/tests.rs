//! Planted lies: each must be found, and only it.

use super::super::told::tests::told;
use super::*;

fn charge(number: u64, first: Option<Told>) -> Order {
    Order {
        key: format!("key-{number}"),
        what: What::Charge { amount: 100 + number, declined: false },
        first,
    }
}

fn made(number: u64) -> Order {
    let body = format!(r#"{{"id":"ch_{number}","amount":{}}}"#, 100 + number);
    charge(number, Some(told(201, &body)))
}

fn refused(number: u64) -> Order {
    let refusal = told(402, &format!(r#"{{"charge":"ch_{number}"}}"#));
    declined(charge(number, Some(refusal)))
}

/// With a card that is declined.
fn declined(order: Order) -> Order {
    let What::Charge { amount, .. } = order.what else { panic!("a transfer") };
    Order { what: What::Charge { amount, declined: true }, ..order }
}

fn effect(number: u64) -> Effect {
    Effect { key: Some(format!("k{number}")), payment: Some(format!("ch_{number}")), amount: 100 + number }
}

fn wrongs(charges: &[Order], effects: &[Effect]) -> Vec<Wrong> {
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
    let twin = Order { key: "key-9".into(), ..made(1) };
    assert_eq!(wrongs(&[made(1), twin], &[effect(1)]), [Wrong::Mistaken]);
    assert_eq!(wrongs(&[charge(1, Some(told(201, "{}")))], &[]), [Wrong::Mistaken]);
}

#[test]
fn a_declined_card_that_succeeds() {
    let lucky = declined(made(1));
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

mod transfers {
    use super::super::super::books::Balances;
    use super::*;

    const SHORT: &str = r#"{"error":"insufficient_funds"}"#;

    fn transfer(number: u64, first: Option<Told>) -> Order {
        Order { key: format!("key-{number}"), what: What::Transfer { from: 0, to: 1, amount: number }, first }
    }

    fn made(number: u64) -> Order {
        transfer(number, Some(told(201, &format!(r#"{{"id":"tr_{number}","amount":{number}}}"#))))
    }

    fn books(guarded: [i64; 4]) -> Balances {
        Balances { guarded: guarded.to_vec(), world: -40_000 }
    }

    fn wrongs(orders: &[Order], balances: &Balances) -> Vec<Wrong> {
        judge_transfers(orders, balances).counts.into_keys().collect()
    }

    #[test]
    fn honest_books_are_clean() {
        assert!(wrongs(&[], &books([10_000; 4])).is_empty());
        let refused = transfer(9, Some(told(400, SHORT)));
        let charge = charge(8, None);
        let orders = [made(7), refused, charge, made(5)];
        assert!(wrongs(&orders, &books([9_988, 10_012, 10_000, 10_000])).is_empty());
    }

    #[test]
    fn a_transfer_that_is_lost_or_made_twice() {
        assert_eq!(wrongs(&[made(7)], &books([10_000; 4])), [Wrong::Balance]);
        assert_eq!(wrongs(&[made(7)], &books([9_986, 10_014, 10_000, 10_000])), [Wrong::Balance]);
        let refused = transfer(7, Some(told(400, SHORT)));
        assert_eq!(wrongs(&[refused], &books([9_993, 10_007, 10_000, 10_000])), [Wrong::Balance]);
    }

    #[test]
    fn money_from_nowhere_and_a_broken_floor() {
        let leak = Balances { world: -39_999, ..books([10_000; 4]) };
        assert_eq!(wrongs(&[], &leak), [Wrong::Balance]);
        assert_eq!(wrongs(&[made(10_001)], &books([-1, 20_001, 10_000, 10_000])), [Wrong::Floor]);
    }

    #[test]
    fn answers_that_are_missing_strange_or_mistaken() {
        let still = books([10_000; 4]);
        assert_eq!(wrongs(&[transfer(7, None)], &still), [Wrong::Unanswered]);
        let declined = transfer(7, Some(told(402, r#"{"error":"card_declined"}"#)));
        assert_eq!(wrongs(&[declined], &still), [Wrong::Strange]);
        let moved = books([9_986, 10_014, 10_000, 10_000]);
        let twin = Order { key: "key-9".into(), ..made(7) };
        assert_eq!(wrongs(&[made(7), twin], &moved), [Wrong::Mistaken]);
        let other = transfer(14, Some(told(201, r#"{"id":"tr_1","amount":13}"#)));
        assert_eq!(wrongs(&[other], &moved), [Wrong::Amount]);
    }
}
