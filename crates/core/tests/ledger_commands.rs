//! Decisions about the ledger: the result of each command and each of its flaws.

#![allow(clippy::unwrap_used, reason = "an invalid fixture must stop its test")]

mod given;

use counterfoil_core::ledger::account::{Account, AccountCode, AccountName, Guard, Side};
use counterfoil_core::ledger::balance::{Balance, Delta};
use counterfoil_core::ledger::chart::{ROLES, Role};
use counterfoil_core::ledger::convert::{Rate, Rounding};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::transaction::{BadLegs, Layer, Leg, Legs, Transaction, TransactionKind};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums};
use counterfoil_core::payments::ledger::decide::{
    self, DecisionContext, Exchange, HOLD_DEFAULT, KnownAccounts,
};
use counterfoil_core::payments::ledger::{
    AccountSelector, Convert, End, HoldTerms, LedgerRefusal, Metadata, Open, Post, PostLeg, TransferOrder,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, TenantId, TransactionId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Span;
use given::at;
use std::sync::Arc;

const TENANT: TenantId = TenantId::from_i64(1);
const FRAME: DecisionContext =
    DecisionContext { tenant: TENANT, id: TransactionId::from_i64(70), now: at(500) };

fn usd() -> Asset {
    Asset::parse("USD").unwrap()
}

fn eur() -> Asset {
    Asset::parse("EUR").unwrap()
}

fn id(number: i64) -> AccountId {
    AccountId::from_i64(number)
}

fn metadata() -> Metadata {
    Metadata::from([("order".to_owned(), Masked::new("1001".to_owned()))])
}

fn opening(code: &str, guard: Guard) -> Open {
    let code = AccountCode::parse(code).unwrap();
    Open { code, asset: usd(), normal: Side::Credit, guard, shards: 4, metadata: metadata() }
}

fn guard(floor: Option<i64>, cap: Option<i64>) -> Guard {
    Guard { floor, cap }
}

fn account(number: i64, code: &str, bounds: Guard) -> Account {
    decide::open(opening(code, bounds), id(number), TENANT, at(0)).0
}

/// The tenant owns `a` (1) and `b` (2) in dollars and `e` (3) in euros; another tenant owns `x`
/// (4).
fn known() -> KnownAccounts {
    let mut known = KnownAccounts::default();
    known.learn(Arc::new(account(1, "a", guard(Some(0), None))));
    known.learn(Arc::new(account(2, "b", guard(None, None))));
    known.learn(Arc::new(Account { asset: eur(), ..account(3, "e", guard(None, None)) }));
    known.learn(Arc::new(Account { tenant: TenantId::from_i64(2), ..account(4, "x", guard(None, None)) }));
    known
}

fn code(text: &str) -> AccountSelector {
    AccountSelector::Code(AccountCode::parse(text).unwrap())
}

fn order(from: AccountSelector, to: AccountSelector) -> TransferOrder {
    TransferOrder { from, to, amount: 250, asset: usd(), hold: None, metadata: metadata() }
}

fn leg(account: i64, side: Side, layer: Layer, amount: i64) -> Leg {
    Leg { account: id(account), side, layer, amount, asset: usd() }
}

fn hold() -> Hold {
    let terms = HoldTerms { expires_at: Some(at(900)) };
    let order = TransferOrder { hold: Some(terms), ..order(code("a"), code("b")) };
    decide::transfer(order, &known(), FRAME).unwrap().1.unwrap()
}

/// Expects flaws with these pointers and message prefixes.
#[track_caller]
fn check_flaws<T: std::fmt::Debug>(decided: Result<T, Vec<Flaw>>, expected: &[(&str, &str)]) {
    let flaws = decided.unwrap_err();
    assert_eq!(flaws.iter().map(|flaw| flaw.pointer.as_str()).collect::<Vec<_>>(), places(expected));
    for (flaw, (_, says)) in flaws.iter().zip(expected) {
        assert!(flaw.message.contains(says), "{flaw:?}");
    }
}

fn places<'a>(expected: &[(&'a str, &str)]) -> Vec<&'a str> {
    expected.iter().map(|(place, _)| *place).collect()
}

#[test]
fn chart_codes_and_crossing_bounds_are_refused() {
    let flaws = |code: &str, bounds| decide::open_flaws(&Open { shards: 1, ..opening(code, bounds) });
    let check = |code: &str, bounds, expected: &[&str]| {
        let found = flaws(code, bounds);
        assert_eq!(found.iter().map(|flaw| flaw.pointer.as_str()).collect::<Vec<_>>(), expected, "{found:?}");
    };
    check("chart:fees:USD", guard(None, None), &["/code"]);
    check("a", guard(Some(5), Some(4)), &["/cap"]);
    check("chart:x", guard(Some(5), Some(4)), &["/code", "/cap"]);
    check("a", guard(Some(5), Some(5)), &[]);
    check("a", guard(Some(4), Some(5)), &[]);
    check("a", guard(Some(5), None), &[]);
    check("a", guard(None, Some(-5)), &[]);
    let spread = decide::open_flaws(&opening("a", guard(Some(1), None)));
    assert_eq!(spread.len(), 1, "a floor above zero is not spread");
    assert_eq!(spread[0].pointer, "/shards");
}

#[test]
fn an_account_that_starts_beyond_its_bound_is_not_sharded() {
    for (bounds, beyond) in [
        (guard(None, None), false),
        (guard(Some(0), None), false),
        (guard(Some(-1), None), false),
        (guard(Some(1), None), true),
        (guard(None, Some(0)), false),
        (guard(None, Some(1)), false),
        (guard(None, Some(-1)), true),
        (guard(Some(-2), Some(-1)), true),
        (guard(Some(1), Some(2)), true),
        (guard(Some(-1), Some(1)), false),
    ] {
        assert_eq!(decide::spread_flaw(bounds, 2).is_some(), beyond, "{bounds:?}");
        assert_eq!(decide::spread_flaw(bounds, 1), None, "{bounds:?}");
    }
    assert_eq!(decide::spread_flaw(guard(Some(1), None), 2).unwrap().pointer, "/shards");
}

#[test]
fn an_opened_account_has_its_code_and_if_guarded_a_balance() {
    let (account, name, balance) = decide::open(opening("a", guard(Some(-5), Some(9))), id(1), TENANT, at(3));
    let expected = Account {
        id: id(1),
        tenant: TENANT,
        code: AccountCode::parse("a").unwrap(),
        asset: usd(),
        normal: Side::Credit,
        guard: guard(Some(-5), Some(9)),
        shards: 4,
        widest: 4,
        metadata: metadata(),
        created_at: at(3),
        revision: 1,
    };
    assert_eq!(account, expected);
    assert_eq!(name, AccountName { tenant: TENANT, code: AccountCode::parse("a").unwrap(), account: id(1) });
    let first = Balance {
        tenant: TENANT,
        account: id(1),
        shard: 0,
        posted: 0,
        outgoing: 0,
        incoming: 0,
        floor: Some(-5),
        cap: Some(9),
        revision: 1,
    };
    assert_eq!(balance, Some(first));
    assert_eq!(decide::open(opening("a", guard(None, None)), id(1), TENANT, at(3)).2, None);
}

#[test]
fn an_account_remembers_its_largest_number_of_shards() {
    let four = account(1, "a", guard(Some(0), None));
    let two = decide::reshard(&four, 2);
    assert_eq!(two, Account { shards: 2, widest: 4, revision: 2, ..four.clone() });
    let eight = decide::reshard(&two, 8);
    assert_eq!(eight, Account { shards: 8, widest: 8, revision: 3, ..four });
}

#[test]
fn accounts_are_found_by_id_and_by_code_and_only_by_their_tenant() {
    let known = known();
    let found = |named: &AccountSelector| known.named(named, TENANT).map(|account| account.id);
    assert_eq!(found(&AccountSelector::Id(id(1))), Some(id(1)));
    assert_eq!(found(&code("b")), Some(id(2)));
    assert_eq!(found(&AccountSelector::Id(id(4))), None, "another tenant's");
    assert_eq!(found(&code("x")), None, "another tenant's");
    assert_eq!(found(&AccountSelector::Id(id(9))), None);
    assert_eq!(found(&code("nobody")), None);
    assert_eq!(known.get(id(4)).map(|account| account.id), Some(id(4)));
    assert_eq!(known.get(id(9)), None);
}

#[test]
fn guarded_accounts_move_by_the_sum_of_their_legs() {
    let mut known = known();
    known.learn(Arc::new(account(5, "capped", guard(None, Some(9)))));
    let legs = [
        leg(1, Side::Debit, Layer::Released, 100),
        leg(1, Side::Debit, Layer::Posted, 60),
        leg(2, Side::Credit, Layer::Posted, 60),
        leg(5, Side::Credit, Layer::Pending, 7),
    ];
    let deltas = known.deltas(&legs).unwrap();
    let numbers: Vec<(i64, Delta)> =
        deltas.iter().map(|(account, delta)| (account.id.to_i64(), *delta)).collect();
    let first = Delta { posted: -60, outgoing: -100, ..Delta::default() };
    assert_eq!(numbers, [(1, first), (5, Delta { incoming: 7, ..Delta::default() })]);
    assert_eq!(known.deltas(&[]).map(|deltas| deltas.len()), Some(0));
    assert!(known.deltas(&[leg(9, Side::Debit, Layer::Posted, 1)]).is_none(), "not known");
    let most = leg(1, Side::Debit, Layer::Posted, i64::MAX);
    assert!(known.deltas(&[most, most]).is_none(), "a sum that does not fit");
}

#[test]
fn a_refused_transfer_lists_all_its_flaws() {
    let transfer = |order| decide::transfer(order, &known(), FRAME);
    check_flaws(
        transfer(order(code("nobody"), AccountSelector::Id(id(4)))),
        &[("/from", "no such account"), ("/to", "no such account")],
    );
    check_flaws(transfer(order(code("e"), code("b"))), &[("/currency", "counts EUR, not USD")]);
    check_flaws(transfer(order(code("a"), code("e"))), &[("/currency", "counts EUR, not USD")]);
    check_flaws(transfer(order(code("a"), AccountSelector::Id(id(1)))), &[("/to", "comes from")]);
    for late in [at(499), at(500)] {
        let hold = Some(HoldTerms { expires_at: Some(late) });
        check_flaws(
            transfer(TransferOrder { hold, ..order(code("a"), code("b")) }),
            &[("/expires_at", "has passed")],
        );
    }
    let hold = Some(HoldTerms { expires_at: Some(at(1)) });
    let both = transfer(TransferOrder { hold, ..order(code("a"), code("a")) });
    check_flaws(both, &[("/to", "comes from"), ("/expires_at", "has passed")]);
    let nothing = TransferOrder { amount: 0, ..order(code("a"), code("b")) };
    check_flaws(transfer(nothing), &[("/amount", "between 1 and")]);
}

#[test]
fn a_transfer_debits_one_and_credits_the_other() {
    let (transaction, hold) =
        decide::transfer(order(code("a"), AccountSelector::Id(id(2))), &known(), FRAME).unwrap();
    let legs = Legs::transfer(id(1), id(2), 250, usd(), Layer::Posted).unwrap();
    let expected = Transaction {
        id: FRAME.id,
        tenant: TENANT,
        kind: TransactionKind::Transfer,
        legs,
        metadata: metadata(),
        at: at(500),
    };
    assert_eq!(transaction, expected);
    assert_eq!(hold, None);
}

#[test]
fn a_held_transfer_reserves_and_lapses_after_seven_days_by_default() {
    let held = |expires_at| {
        let hold = Some(HoldTerms { expires_at });
        decide::transfer(TransferOrder { hold, ..order(code("a"), code("b")) }, &known(), FRAME).unwrap()
    };
    let (transaction, hold) = held(None);
    let expected = Hold {
        id: HoldId::from_i64(70),
        tenant: TENANT,
        from: id(1),
        to: id(2),
        amount: 250,
        asset: usd(),
        expires_at: at(500).plus(Span::from_ms(604_800_000)),
        state: HoldState::Pending,
        metadata: metadata(),
        created_at: at(500),
        revision: 1,
    };
    assert_eq!(HOLD_DEFAULT, Span::from_ms(604_800_000));
    assert_eq!(hold, Some(expected));
    assert_eq!(transaction.kind, TransactionKind::Held(HoldId::from_i64(70)));
    assert_eq!(transaction.legs, Legs::transfer(id(1), id(2), 250, usd(), Layer::Pending).unwrap());
    assert_eq!(transaction.metadata, Metadata::new(), "the hold keeps the metadata");
    assert_eq!(held(Some(at(501))).1.unwrap().expires_at, at(501));
}

#[test]
fn a_hold_is_posted_in_part_or_in_full_and_never_beyond() {
    let hold = hold();
    for amount in [0, -1, 251] {
        check_flaws(
            decide::end(&hold, End::Post { amount: Some(amount) }, FRAME),
            &[("/amount", "between 1 and the 250")],
        );
    }
    for (asked, amount) in [(None, 250), (Some(250), 250), (Some(1), 1)] {
        let (transaction, ended) = decide::end(&hold, End::Post { amount: asked }, FRAME).unwrap();
        let legs = [
            leg(1, Side::Debit, Layer::Released, 250),
            leg(2, Side::Credit, Layer::Released, 250),
            leg(1, Side::Debit, Layer::Posted, amount),
            leg(2, Side::Credit, Layer::Posted, amount),
        ];
        assert_eq!(transaction.legs.as_slice(), legs);
        assert_eq!(transaction.kind, TransactionKind::HoldPosted(hold.id));
        assert_eq!((transaction.id, transaction.tenant, transaction.at), (FRAME.id, TENANT, at(500)));
        let state = HoldState::Posted { amount, by: FRAME.id };
        assert_eq!(ended, Hold { state, revision: 2, ..hold.clone() });
    }
}

#[test]
fn a_void_and_a_lapse_release_all_that_is_held() {
    let hold = hold();
    let released = Legs::released_pair(id(1), id(2), 250, usd());
    let (transaction, ended) = decide::end(&hold, End::Void, FRAME).unwrap();
    assert_eq!((transaction.kind, &transaction.legs), (TransactionKind::HoldVoided(hold.id), &released));
    assert_eq!(ended, Hold { state: HoldState::Voided { by: FRAME.id }, revision: 2, ..hold.clone() });
    let (transaction, ended) = decide::lapse(&hold, FRAME);
    assert_eq!((transaction.kind, &transaction.legs), (TransactionKind::HoldLapsed(hold.id), &released));
    assert_eq!(ended, Hold { state: HoldState::Lapsed { by: FRAME.id }, revision: 2, ..hold });
}

#[test]
fn flaws_point_to_their_legs() {
    let entry = |named, side, amount| PostLeg { account: named, side, amount, asset: usd() };
    let post = |entries| decide::post(Post { entries, metadata: metadata() }, &known(), FRAME);
    let good = || entry(code("a"), Side::Debit, 5);
    let unknown = entry(code("nobody"), Side::Credit, 5);
    check_flaws(post(vec![good(), unknown]), &[("/entries/1/account", "no such account")]);
    let euro = entry(code("e"), Side::Credit, 5);
    check_flaws(post(vec![euro, good()]), &[("/entries/0/asset", "counts EUR")]);
    check_flaws(post(vec![good()]), &[("/entries", "at least two")]);
    check_flaws(
        post(vec![good(), entry(code("b"), Side::Credit, 0)]),
        &[("/entries/1/amount", "between 1 and")],
    );
    check_flaws(
        post(vec![good(), entry(AccountSelector::Id(id(1)), Side::Credit, 5)]),
        &[("/entries/1/account", "an earlier entry")],
    );
    check_flaws(post(vec![good(), entry(code("b"), Side::Credit, 6)]), &[("/entries", "USD differ")]);
}

#[test]
fn legs_are_posted_unchanged() {
    let entry = |named, side| PostLeg { account: named, side, amount: 5, asset: usd() };
    let entries = vec![entry(code("b"), Side::Credit), entry(code("a"), Side::Debit)];
    let transaction = decide::post(Post { entries, metadata: metadata() }, &known(), FRAME).unwrap();
    let legs = [leg(2, Side::Credit, Layer::Posted, 5), leg(1, Side::Debit, Layer::Posted, 5)];
    assert_eq!(transaction.legs.as_slice(), legs);
    assert_eq!((transaction.kind, transaction.metadata), (TransactionKind::General, metadata()));
}

#[test]
fn only_plain_transactions_are_reversible() {
    let hold = HoldId::from_i64(1);
    for (kind, reversible) in [
        (TransactionKind::Transfer, true),
        (TransactionKind::General, true),
        (TransactionKind::Conversion, true),
        (TransactionKind::HoldPosted(hold), true),
        (TransactionKind::Charge(ChargeId::from_i64(1)), false),
        (TransactionKind::Reversal(TransactionId::from_i64(1)), false),
        (TransactionKind::Held(hold), false),
        (TransactionKind::HoldVoided(hold), false),
        (TransactionKind::HoldLapsed(hold), false),
    ] {
        assert_eq!(decide::is_reversible(kind), reversible, "{kind:?}");
    }
}

#[test]
fn a_reversal_swaps_the_sides_of_posted_legs() {
    let (posted, _) = decide::end(&hold(), End::Post { amount: Some(9) }, FRAME).unwrap();
    let later = DecisionContext { id: TransactionId::from_i64(71), now: at(600), ..FRAME };
    let reversal = decide::reverse(&posted, later);
    let legs = [leg(1, Side::Credit, Layer::Posted, 9), leg(2, Side::Debit, Layer::Posted, 9)];
    assert_eq!(reversal.legs.as_slice(), legs);
    assert_eq!(
        (reversal.kind, reversal.id, reversal.at),
        (TransactionKind::Reversal(FRAME.id), later.id, at(600))
    );
}

fn conversion(amount: i64, rate: &str) -> Result<Transaction, Vec<Flaw>> {
    let (from, to) = (account(1, "a", guard(None, None)), account(3, "e", guard(None, None)));
    let to = Account { asset: eur(), ..to };
    exchange(amount, rate, &from, &to)
}

fn exchange(amount: i64, rate: &str, from: &Account, to: &Account) -> Result<Transaction, Vec<Flaw>> {
    let rate = Rate::new(&Decimal::parse(rate).unwrap()).unwrap();
    let rounding = Rounding::Down;
    let order = Convert { from: code("a"), to: code("e"), amount, rate, rounding, metadata: metadata() };
    let chart = Exchange { bought: id(10), sold: id(11), rounding: id(12) };
    let converted = decide::price(&order, from, to, (2, 2))?;
    decide::exchange(order, from, to, converted, chart, FRAME)
}

#[test]
fn conversions_within_one_asset_or_out_of_range_are_refused() {
    let same = account(1, "a", guard(None, None));
    check_flaws(exchange(100, "0.9", &same, &account(2, "b", guard(None, None))), &[("/to", "same asset")]);
    check_flaws(conversion(1, "0.5"), &[("/amount", "nothing is left")]);
    check_flaws(conversion(999_999_999_999_999, "1000"), &[("/amount", "too large")]);
}

#[test]
fn a_conversion_balances_both_assets_and_posts_the_remainder() {
    let in_euros = |account, side, amount| Leg { asset: eur(), ..leg(account, side, Layer::Posted, amount) };
    let exact = conversion(100, "0.9").unwrap();
    let legs = [
        leg(1, Side::Debit, Layer::Posted, 100),
        leg(10, Side::Credit, Layer::Posted, 100),
        in_euros(11, Side::Debit, 90),
        in_euros(3, Side::Credit, 90),
    ];
    assert_eq!(exact.legs.as_slice(), legs, "an exact result has no rounding leg");
    assert_eq!((exact.kind, exact.metadata), (TransactionKind::Conversion, metadata()));
    let rounded = conversion(101, "0.9").unwrap();
    let legs = [
        leg(1, Side::Debit, Layer::Posted, 101),
        leg(10, Side::Credit, Layer::Posted, 101),
        in_euros(11, Side::Debit, 91),
        in_euros(3, Side::Credit, 90),
        in_euros(12, Side::Credit, 1),
    ];
    assert_eq!(rounded.legs.as_slice(), legs);
}

#[test]
fn a_captured_charge_is_posted_under_its_own_number() {
    let sums = ChargeSums { captured: 1_000, ..ChargeSums::default() };
    let charge = Charge { status: ChargeStatus::Succeeded, sums, ..given::charge() };
    let posted = decide::post_charge(&charge, id(1), id(2), at(9)).unwrap();
    let expected = Transaction {
        id: TransactionId::from_i64(charge.id.to_i64()),
        tenant: charge.tenant,
        kind: TransactionKind::Charge(charge.id),
        legs: Legs::transfer(id(1), id(2), 1_000, usd(), Layer::Posted).unwrap(),
        metadata: Metadata::new(),
        at: at(9),
    };
    assert_eq!(posted, expected);
    let nothing = given::charge();
    assert!(decide::post_charge(&nothing, id(1), id(2), at(9)).is_err(), "nothing was captured");
}

#[test]
fn accounts_of_the_chart_have_no_bounds_and_the_side_of_their_role() {
    for role in ROLES {
        let open = decide::chart_account(role, usd()).unwrap();
        let normal = if matches!(role, Role::Receivable | Role::Fees) { Side::Debit } else { Side::Credit };
        let expected = Open {
            code: AccountCode::parse(&format!("chart:{}:USD", role.name())).unwrap(),
            asset: usd(),
            normal,
            guard: guard(None, None),
            shards: 1,
            metadata: Metadata::new(),
        };
        assert_eq!(open, expected);
    }
}

#[test]
fn every_flaw_of_legs_explains_its_remedy() {
    for (bad, says) in [
        (BadLegs::TooFew, "at least two"),
        (BadLegs::TooMany, "split it"),
        (BadLegs::Amount(0), "between 1 and"),
        (BadLegs::Twice(0), "into one"),
        (BadLegs::Unbalanced(usd()), "USD differ"),
    ] {
        assert!(decide::sentence(bad).contains(says), "{bad:?}");
    }
}

#[test]
fn refusals_have_the_names_clients_see() {
    for (refusal, name) in [
        (LedgerRefusal::InsufficientFunds, "insufficient_funds"),
        (LedgerRefusal::CapExceeded, "cap_exceeded"),
        (LedgerRefusal::AccountExists, "account_exists"),
        (LedgerRefusal::AssetExists, "asset_exists"),
        (LedgerRefusal::AlreadyReversed, "already_reversed"),
        (LedgerRefusal::NotReversible, "not_reversible"),
        (LedgerRefusal::HoldEnded, "hold_ended"),
    ] {
        assert_eq!(refusal.name(), name);
    }
}
