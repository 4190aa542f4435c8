//! Planted lies: the judge must find each, and only that one.

use super::super::attempt::tests::final_answer;
use super::super::ledger::Balances;
use super::super::order::{Charge, Operate, Order, Payout, SagaAction, Tender, What};
use super::super::provider::{Effect, EffectKind};
use super::super::served::{Parked, Shown};
use super::*;
use std::collections::HashMap;

fn order(number: u64, what: What, first: Option<FinalAnswer>) -> Order {
    Order { key: format!("key-{number}"), what, first }
}

/// The charge with this number, for an amount no other charge has.
fn charge(number: u64, tender: Tender, first: Option<FinalAnswer>) -> Order {
    order(number, What::Charge(Charge { amount: 100 + number, declined: false, tender }), first)
}

fn made(number: u64, tender: Tender) -> Order {
    let body = format!(r#"{{"id":"ch_{number}","amount":{}}}"#, 100 + number);
    charge(number, tender, Some(final_answer(201, &body)))
}

fn paid(number: u64) -> Order {
    made(number, Tender::Card)
}

fn refused(number: u64) -> Order {
    let refusal = final_answer(402, &format!(r#"{{"charge":"ch_{number}","error":"card_declined"}}"#));
    declined(charge(number, Tender::Card, Some(refusal)))
}

/// Changes the order to a declined card.
fn declined(mut order: Order) -> Order {
    let What::Charge(charge) = &mut order.what else { panic!("no charge") };
    charge.declined = true;
    order
}

fn operation(key: u64, action: SagaAction, of: u64, first: Option<FinalAnswer>) -> Order {
    let operate = Operate { action, charge: format!("ch_{of}").into(), amount: None };
    order(key, What::Operate(operate), first)
}

fn captured(key: u64, of: u64, amount: u64) -> Order {
    let body = format!(r#"{{"id":"ch_{of}","amount_captured":{amount}}}"#);
    operation(key, SagaAction::Capture, of, Some(final_answer(200, &body)))
}

fn voided(key: u64, of: u64) -> Order {
    let body = format!(r#"{{"id":"ch_{of}","amount":{}}}"#, 100 + of);
    operation(key, SagaAction::Void, of, Some(final_answer(200, &body)))
}

fn given_back(key: u64, of: u64, amount: u64) -> Order {
    let body = format!(r#"{{"id":"re_{key}","amount":{amount}}}"#);
    operation(key, SagaAction::Refund, of, Some(final_answer(201, &body)))
}

fn conflict(key: u64, action: SagaAction, of: u64) -> Order {
    operation(key, action, of, Some(final_answer(409, r#"{"error":"charge_state_conflict"}"#)))
}

fn effect(kind: EffectKind, number: u64, amount: u64) -> Effect {
    let key = Some(format!("{kind:?}-{number}-{amount}"));
    Effect { kind, key, payment: Some(format!("ch_{number}")), amount, at: "now".into() }
}

/// The executed charge with this number.
fn done(number: u64) -> Effect {
    effect(EffectKind::Charge, number, 100 + number)
}

fn held(number: u64) -> Effect {
    effect(EffectKind::Authorize, number, 100 + number)
}

/// The API's view of a server that shows everything as the provider has it.
fn honest(orders: &[Order], effects: &[Effect]) -> HashMap<String, Shown> {
    let sum = |id: &str, kinds: &[EffectKind]| -> u64 {
        let of = effects.iter().filter(|one| one.payment.as_deref() == Some(id) && kinds.contains(&one.kind));
        of.map(|one| one.amount).sum()
    };
    let charges = orders.iter().filter(|order| order.is_charge());
    let shown = charges.filter_map(|order| {
        let first = order.first.as_ref()?;
        let id = first.names()?;
        let (taken, back) =
            (sum(&id, &[EffectKind::Charge, EffectKind::Capture]), sum(&id, &[EffectKind::Refund]));
        let status = match (first.is_success(), sum(&id, &[EffectKind::Cancel]), taken, back) {
            (false, ..) => "failed",
            (true, 1.., ..) => "voided",
            (true, 0, 0, _) => "requires_capture",
            (true, 0, _, 0) => "succeeded",
            (true, 0, taken, back) if back < taken => "partially_refunded",
            (true, 0, ..) => "refunded",
        };
        let What::Charge(charge) = &order.what else { return None };
        let captured = taken + if taken > 0 { charge.wallet() } else { 0 };
        Some((id, Shown { status: status.to_owned(), captured, refunded: back }))
    });
    let payouts = orders.iter().filter(|order| order.is_payout()).filter_map(|order| {
        let first = order.first.as_ref()?;
        let (What::Payout(payout), paid) = (&order.what, first.is_success()) else { return None };
        let (status, captured) = if paid { ("paid", payout.amount) } else { ("failed", 0) };
        Some((first.names()?, Shown { status: status.to_owned(), captured, refunded: 0 }))
    });
    shown.chain(payouts).collect()
}

fn judged(orders: &[Order], effects: &[Effect], parked: &Parked) -> Judged {
    let shown = honest(orders, effects);
    judge(&Evidence { orders, effects, shown: &shown, parked, by_itself: false })
}

fn wrongs(orders: &[Order], effects: &[Effect]) -> Vec<Wrong> {
    let Judged { verdict, .. } = judged(orders, effects, &Parked::default());
    assert_eq!(verdict.is_clean(), verdict.counts.is_empty() && verdict.examples.is_empty());
    verdict.counts.into_keys().collect()
}

#[test]
fn an_honest_history_is_clean() {
    assert!(wrongs(&[paid(1), refused(2), paid(3)], &[done(3), done(1)]).is_empty());
    assert!(wrongs(&[], &[]).is_empty());
    let split = Tender::Split { place: 0, account: "ac_1".into(), wallet: 50 };
    let orders =
        [made(1, Tender::Held), captured(2, 1, 60), conflict(3, SagaAction::Void, 1), made(4, split)];
    let effects = [
        held(1),
        effect(EffectKind::Capture, 1, 60),
        effect(EffectKind::Authorize, 4, 54),
        effect(EffectKind::Capture, 4, 54),
        effect(EffectKind::Refund, 1, 20),
        effect(EffectKind::Refund, 1, 40),
    ];
    let orders = [&orders[..], &[given_back(5, 1, 40), given_back(6, 1, 20)]].concat();
    assert!(wrongs(&orders, &effects).is_empty());
    let judged = judged(&orders, &effects, &Parked::default());
    assert_eq!((judged.cards, judged.wallets), (54, 50));
    assert!(
        wrongs(&[made(1, Tender::Held), voided(2, 1)], &[held(1), effect(EffectKind::Cancel, 1, 101)])
            .is_empty()
    );
}

#[test]
fn two_effects_of_one_step_or_of_one_key_are_found() {
    let other_key = Effect { key: Some("k9".into()), ..done(1) };
    assert_eq!(wrongs(&[paid(1)], &[done(1), other_key]), [Wrong::Double]);
    let same_key = Effect { key: done(1).key, ..done(2) };
    assert_eq!(wrongs(&[paid(1), paid(2)], &[done(1), same_key]), [Wrong::Double]);
    let twice = [held(1), effect(EffectKind::Capture, 1, 40), effect(EffectKind::Capture, 1, 50)];
    let orders = [made(1, Tender::Held), captured(2, 1, 40), captured(3, 1, 50)];
    assert_eq!(wrongs(&orders, &twice), [Wrong::Double]);
}

#[test]
fn repeats_by_the_provider_are_counted_and_no_violation() {
    let (orders, effects) = ([paid(1)], [done(1), done(1)]);
    let shown = honest(&orders, &effects[..1]);
    let evidence = Evidence {
        orders: &orders,
        effects: &effects,
        shown: &shown,
        parked: &Parked::default(),
        by_itself: true,
    };
    let found = judge(&evidence);
    assert!(found.verdict.is_clean(), "{:?}", found.verdict);
    assert_eq!(found.repeated, 1);
    let later = [done(1), Effect { at: "later".into(), ..done(1) }];
    let found = judge(&Evidence { effects: &later, ..evidence });
    assert!(found.verdict.count(Wrong::Double) > 0, "that was asked for again");
}

#[test]
fn a_captured_and_voided_charge_and_an_excess_refund_are_found() {
    let both = [held(1), effect(EffectKind::Capture, 1, 101), effect(EffectKind::Cancel, 1, 101)];
    let orders = [made(1, Tender::Held), captured(2, 1, 101), voided(3, 1)];
    assert_eq!(wrongs(&orders, &both), [Wrong::Both]);
    let over = [done(1), effect(EffectKind::Refund, 1, 60), effect(EffectKind::Refund, 1, 61)];
    let orders = [paid(1), given_back(2, 1, 60), given_back(3, 1, 61)];
    assert_eq!(wrongs(&orders, &over), [Wrong::OverRefund]);
}

#[test]
fn a_success_without_effect_is_found() {
    assert_eq!(wrongs(&[paid(1), paid(2)], &[done(2)]), [Wrong::Unpaid]);
    assert_eq!(wrongs(&[paid(1), given_back(2, 1, 5)], &[done(1)]), [Wrong::Unpaid]);
    assert_eq!(wrongs(&[made(1, Tender::Held), voided(2, 1)], &[held(1)]), [Wrong::Unpaid]);
}

#[test]
fn a_refusal_with_an_effect_is_found() {
    assert_eq!(wrongs(&[refused(1)], &[done(1)]), [Wrong::PaidRefusal]);
    let orders = [paid(1), conflict(2, SagaAction::Refund, 1)];
    assert_eq!(wrongs(&orders, &[done(1), effect(EffectKind::Refund, 1, 5)]), [Wrong::PaidRefusal]);
    // A released authorization cost nobody anything.
    assert!(wrongs(&[refused(1)], &[held(1), effect(EffectKind::Cancel, 1, 101)]).is_empty());
}

#[test]
fn a_wrong_amount_at_the_provider_or_in_the_answer_is_found() {
    assert_eq!(wrongs(&[paid(1)], &[effect(EffectKind::Charge, 1, 7)]), [Wrong::Amount]);
    let answered = charge(1, Tender::Card, Some(final_answer(201, r#"{"id":"ch_1","amount":7}"#)));
    assert_eq!(wrongs(&[answered], &[done(1)]), [Wrong::Amount]);
    let orders = [paid(1), given_back(2, 1, 5)];
    assert_eq!(
        wrongs(&orders, &[done(1), effect(EffectKind::Refund, 1, 6)]),
        [Wrong::Unpaid, Wrong::Unexplained]
    );
}

#[test]
fn an_unanswered_key_and_an_unexplained_effect_are_found() {
    assert_eq!(wrongs(&[charge(1, Tender::Card, None)], &[]), [Wrong::Unanswered]);
    assert_eq!(
        wrongs(&[paid(1), operation(2, SagaAction::Refund, 1, None)], &[done(1)]),
        [Wrong::Unanswered]
    );
    assert_eq!(wrongs(&[paid(1)], &[done(1), done(2)]), [Wrong::Unexplained]);
    assert_eq!(wrongs(&[paid(1)], &[done(1), effect(EffectKind::Refund, 1, 5)]), [Wrong::Unexplained]);
    let nameless = Effect { payment: None, ..done(2) };
    assert_eq!(wrongs(&[paid(1)], &[done(1), nameless]), [Wrong::Unexplained]);
}

#[test]
fn parked_orders_are_no_violation_whether_or_not_executed() {
    let orders = [charge(1, Tender::Card, None), paid(2), operation(3, SagaAction::Refund, 2, None)];
    let parked = Parked {
        orders: [0, 2].into(),
        charges: ["ch_1".to_owned(), "ch_2".to_owned()].into(),
        ..Parked::default()
    };
    for effects in [vec![done(2)], vec![done(1), done(2), effect(EffectKind::Refund, 2, 5)]] {
        let found = judged(&orders, &effects, &parked);
        assert!(found.verdict.is_clean(), "{:?}", found.verdict);
        assert_eq!(found.cards, 102, "an effect without an answer is not in the ledger");
    }
    let behind = Parked { behind: [1].into(), ..Parked::default() };
    let orders = [paid(2), operation(3, SagaAction::Refund, 2, None)];
    assert!(judged(&orders, &[done(2)], &behind).verdict.is_clean());
    let done = judged(&orders, &[done(2), effect(EffectKind::Refund, 2, 5)], &behind).verdict;
    assert_eq!(done.count(Wrong::Unexplained), 1, "an order that stored nothing has no effect");
}

#[test]
fn a_charge_shown_differently_or_not_at_all_is_found() {
    let (orders, effects) = ([paid(1)], [done(1)]);
    let wrong = |shown: &HashMap<String, Shown>| {
        let parked = Parked::default();
        let evidence =
            Evidence { orders: &orders, effects: &effects, shown, parked: &parked, by_itself: false };
        judge(&evidence).verdict.counts.into_keys().collect::<Vec<_>>()
    };
    let mut shown = honest(&orders, &effects);
    assert!(wrong(&shown).is_empty());
    for change in [
        (|one| one.status = "refunded".to_owned()) as fn(&mut Shown),
        |one| one.captured += 1,
        |one| one.refunded += 1,
    ] {
        let mut other = shown.clone();
        other.values_mut().for_each(change);
        assert_eq!(wrong(&other), [Wrong::Shown]);
    }
    assert_eq!(wrong(&HashMap::new()), [Wrong::Shown]);
    shown.insert("ch_9".into(), Shown { status: "succeeded".into(), captured: 1, refunded: 0 });
    assert_eq!(wrong(&shown), [Wrong::Unexplained]);
}

#[test]
fn two_keys_with_one_charge_or_one_refund_are_found() {
    let twin = Order { key: "key-9".into(), ..paid(1) };
    assert_eq!(wrongs(&[paid(1), twin], &[done(1)]), [Wrong::Mistaken]);
    assert_eq!(wrongs(&[charge(1, Tender::Card, Some(final_answer(201, "{}")))], &[]), [Wrong::Mistaken]);
    let twin = Order { key: "key-9".into(), ..given_back(2, 1, 5) };
    let effects =
        [done(1), effect(EffectKind::Refund, 1, 5), Effect { key: None, ..effect(EffectKind::Refund, 1, 5) }];
    assert_eq!(wrongs(&[paid(1), given_back(2, 1, 5), twin], &effects), [Wrong::Mistaken]);
}

#[test]
fn a_declined_card_that_succeeds_is_found() {
    assert_eq!(wrongs(&[declined(paid(1))], &[done(1)]), [Wrong::Strange]);
}

#[test]
fn replays_are_the_same_or_differ_or_are_lost() {
    let first = final_answer(201, "a");
    assert_eq!(Replay::of(&first, Some(&final_answer(201, "a"))), Replay::Same);
    assert_eq!(Replay::of(&first, Some(&final_answer(201, "b"))), Replay::Differs);
    assert_eq!(Replay::of(&first, Some(&final_answer(402, "a"))), Replay::Differs);
    assert_eq!(Replay::of(&first, None), Replay::Lost);
}

#[test]
fn every_kind_is_reported_once() {
    for (index, (wrong, _)) in WRONGS.iter().enumerate() {
        assert!(!WRONGS[..index].iter().any(|(earlier, _)| earlier == wrong));
    }
    // `Strange` is the last kind: a new kind needs a case above.
    assert_eq!(WRONGS.len(), Wrong::Strange as usize + 1);
}

mod money {
    use super::*;

    const SHORT: &str = r#"{"error":"insufficient_funds"}"#;

    fn transfer(number: u64, first: Option<FinalAnswer>) -> Order {
        order(number, What::Transfer { from: 0, to: 1, amount: number }, first)
    }

    fn made(number: u64) -> Order {
        transfer(number, Some(final_answer(201, &format!(r#"{{"id":"tr_{number}","amount":{number}}}"#))))
    }

    fn ledger(guarded: [i64; 4]) -> Balances {
        Balances { guarded: guarded.to_vec(), world: -40_000, receivable: 0, payable: 0, reserved: 0 }
    }

    fn wrongs(orders: &[Order], balances: &Balances) -> Vec<Wrong> {
        judge_ledger(orders, &Judged::default(), balances).counts.into_keys().collect()
    }

    #[test]
    fn honest_balances_are_clean() {
        assert!(wrongs(&[], &ledger([10_000; 4])).is_empty());
        let refused = transfer(9, Some(final_answer(400, SHORT)));
        let orders = [made(7), refused, charge(8, Tender::Card, None), made(5)];
        assert!(wrongs(&orders, &ledger([9_988, 10_012, 10_000, 10_000])).is_empty());
    }

    #[test]
    fn a_transfer_lost_or_made_twice_is_found() {
        assert_eq!(wrongs(&[made(7)], &ledger([10_000; 4])), [Wrong::Balance]);
        assert_eq!(wrongs(&[made(7)], &ledger([9_986, 10_014, 10_000, 10_000])), [Wrong::Balance]);
        let refused = transfer(7, Some(final_answer(400, SHORT)));
        assert_eq!(wrongs(&[refused], &ledger([9_993, 10_007, 10_000, 10_000])), [Wrong::Balance]);
    }

    #[test]
    fn money_from_nowhere_and_a_broken_floor_are_found() {
        let leak = Balances { world: -39_999, ..ledger([10_000; 4]) };
        assert_eq!(wrongs(&[], &leak), [Wrong::Balance]);
        assert_eq!(wrongs(&[made(10_001)], &ledger([-1, 20_001, 10_000, 10_000])), [Wrong::Floor]);
    }

    #[test]
    fn balances_off_by_one_minor_unit_are_found() {
        let tender = Tender::Split { place: 2, account: "ac_1".into(), wallet: 50 };
        let orders = [super::made(4, tender)];
        let judged = Judged { cards: 54, wallets: 50, ..Judged::default() };
        let right = Balances { receivable: 54, payable: 104, ..ledger([10_000, 10_000, 9_950, 10_000]) };
        assert!(judge_ledger(&orders, &judged, &right).is_clean());
        for (receivable, payable) in [(55, 105), (54, 105), (53, 103)] {
            let other = Balances { receivable, payable, ..ledger([10_000, 10_000, 9_950, 10_000]) };
            assert!(judge_ledger(&orders, &judged, &other).count(Wrong::Balance) > 0);
        }
    }

    #[test]
    fn missing_strange_and_mistaken_answers_are_found() {
        let still = ledger([10_000; 4]);
        assert_eq!(wrongs(&[transfer(7, None)], &still), [Wrong::Unanswered]);
        let declined = transfer(7, Some(final_answer(402, r#"{"error":"card_declined"}"#)));
        assert_eq!(wrongs(&[declined], &still), [Wrong::Strange]);
        let moved = ledger([9_986, 10_014, 10_000, 10_000]);
        let twin = Order { key: "key-9".into(), ..made(7) };
        assert_eq!(wrongs(&[made(7), twin], &moved), [Wrong::Mistaken]);
        let other = transfer(14, Some(final_answer(201, r#"{"id":"tr_1","amount":13}"#)));
        assert_eq!(wrongs(&[other], &moved), [Wrong::Amount]);
    }
}

mod payouts {
    use super::*;

    fn payout(number: u64, closed: bool, first: Option<FinalAnswer>) -> Order {
        order(number, What::Payout(Payout { amount: 100 + number, closed }), first)
    }

    fn paid_out(number: u64) -> Order {
        let body = format!(r#"{{"id":"po_{number}","amount":{}}}"#, 100 + number);
        payout(number, false, Some(final_answer(201, &body)))
    }

    fn failed(number: u64) -> Order {
        let body = format!(r#"{{"payout":"po_{number}","error":"payout_failed"}}"#);
        payout(number, true, Some(final_answer(402, &body)))
    }

    fn left(number: u64, amount: u64) -> Effect {
        Effect { payment: Some(format!("po_{number}")), ..effect(EffectKind::Payout, number, amount) }
    }

    #[test]
    fn honest_payouts_are_clean_and_add_up() {
        let short = payout(3, false, Some(final_answer(400, r#"{"error":"insufficient_funds"}"#)));
        let orders = [paid_out(1), failed(2), short, paid(4)];
        let effects = [left(1, 101), done(4)];
        assert!(wrongs(&orders, &effects).is_empty());
        let judged = judged(&orders, &effects, &Parked::default());
        assert_eq!((judged.cards, judged.paid_out), (104, 101));
        let ledger = |receivable, payable, reserved| Balances {
            guarded: vec![10_000; 4],
            world: -40_000,
            receivable,
            payable,
            reserved,
        };
        assert!(judge_ledger(&orders, &judged, &ledger(3, 3, 0)).is_clean());
        // Never posted, posted twice, never released.
        for wrong in [ledger(104, 104, 0), ledger(-98, -98, 0), ledger(3, 3, 101), ledger(3, 104, 0)] {
            assert!(judge_ledger(&orders, &judged, &wrong).count(Wrong::Balance) > 0, "{wrong:?}");
        }
        let open = [paid_out(1), payout(2, false, None), paid(4)];
        assert!(judge_ledger(&open, &judged, &ledger(3, 3, 102)).is_clean(), "it is still under way");
    }

    #[test]
    fn every_lie_about_a_payout_is_found() {
        let twice = Effect { key: Some("another".into()), ..left(1, 101) };
        for (orders, effects, wrong) in [
            (vec![paid_out(1)], vec![left(1, 101), twice], Wrong::Double),
            (vec![paid_out(1)], vec![left(1, 101), left(1, 101)], Wrong::Double),
            (vec![paid_out(1)], vec![], Wrong::Unpaid),
            (vec![paid_out(1)], vec![left(1, 100)], Wrong::Amount),
            (vec![failed(2)], vec![left(2, 102)], Wrong::PaidRefusal),
            (vec![payout(3, false, None)], vec![], Wrong::Unanswered),
            (vec![], vec![left(4, 104)], Wrong::Unexplained),
            (
                vec![paid_out(1), Order { key: "key-9".into(), ..paid_out(1) }],
                vec![left(1, 101)],
                Wrong::Mistaken,
            ),
            (vec![payout(1, true, paid_out(1).first)], vec![left(1, 101)], Wrong::Strange),
            (
                vec![paid_out(1)],
                vec![left(1, 101), Effect { kind: EffectKind::Charge, key: None, ..left(1, 101) }],
                Wrong::Unexplained,
            ),
        ] {
            let found = wrongs(&orders, &effects);
            assert!(found.contains(&wrong), "{wrong:?}: {found:?} in {orders:?}");
        }
        let (orders, effects) = ([paid_out(1)], [left(1, 101)]);
        for (status, captured) in [("processing", 0), ("failed", 0), ("paid", 100)] {
            let shown =
                HashMap::from([("po_1".to_owned(), Shown { status: status.into(), captured, refunded: 0 })]);
            let parked = Parked::default();
            let evidence = Evidence {
                orders: &orders,
                effects: &effects,
                shown: &shown,
                parked: &parked,
                by_itself: false,
            };
            assert_eq!(judge(&evidence).verdict.count(Wrong::Shown), 1, "{status}");
        }
    }
}
