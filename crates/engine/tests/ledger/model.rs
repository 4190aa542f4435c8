//! The ledger compared with a simple model: sums per account, a list of holds, a list of
//! transactions. Random requests in random order give the same answers.

mod sums;

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::ledger::account::Side::{Credit, Debit};
use counterfoil_core::ledger::convert::{Rate, Rounding};
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::payments::ledger::{
    Convert, HoldTerms, Item, LedgerCommand, Open, Post, PostLeg, TransferOrder,
};
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::{Row, Scan, Store, Upto};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use sums::{Account, Done, Held, Model, Moved};

/// A ledger request.
#[derive(Clone, Debug)]
enum Step {
    OpenAgain(Index),
    Transfer(Index, Index, i64),
    Hold(Index, Index, i64, u64),
    Post(Index, Option<i64>),
    Void(Index),
    Legs(Vec<(Index, i64)>),
    Reverse(Index),
    Convert(Index, Index, i64, u32, Rounding),
    Reshard(Index, u16),
    Many(Vec<(Index, Index, i64)>),
    Wait(u64),
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![1_i64..40, 1_i64..400]
}

fn step() -> impl Strategy<Value = Step> {
    let rounding =
        prop::sample::select(vec![Rounding::HalfEven, Rounding::HalfUp, Rounding::Down, Rounding::Up]);
    let shards = prop::sample::select(vec![1, 2, 5, 16, 256]);
    let leg = (any::<Index>(), prop_oneof![-90_i64..-1, 1_i64..90]);
    prop_oneof![
        1 => any::<Index>().prop_map(Step::OpenAgain),
        6 => (any::<Index>(), any::<Index>(), amount()).prop_map(|(from, to, amount)| Step::Transfer(from, to, amount)),
        4 => (any::<Index>(), any::<Index>(), amount(), 5_u64..60)
            .prop_map(|(from, to, amount, seconds)| Step::Hold(from, to, amount, seconds)),
        3 => (any::<Index>(), prop::option::of(amount())).prop_map(|(hold, amount)| Step::Post(hold, amount)),
        2 => any::<Index>().prop_map(Step::Void),
        3 => prop::collection::vec(leg, 1..4).prop_map(Step::Legs),
        3 => any::<Index>().prop_map(Step::Reverse),
        3 => (any::<Index>(), any::<Index>(), amount(), 1_u32..4_000, rounding)
            .prop_map(|(from, to, amount, rate, rounding)| Step::Convert(from, to, amount, rate, rounding)),
        2 => (any::<Index>(), shards).prop_map(|(account, shards)| Step::Reshard(account, shards)),
        2 => prop::collection::vec((any::<Index>(), any::<Index>(), amount()), 1..8).prop_map(Step::Many),
        2 => (1_u64..40).prop_map(Step::Wait),
    ]
}

/// Guard and number of shards of a new account.
type Bounds = (bool, Option<i64>, Option<i64>, u16);

fn bounds() -> impl Strategy<Value = Bounds> {
    let floor =
        prop_oneof![Just(None), Just(Some(0)), (-200_i64..0).prop_map(Some), (1_i64..60).prop_map(Some)];
    let room = prop_oneof![Just(None), (0_i64..600).prop_map(Some)];
    (any::<bool>(), floor, room, prop::sample::select(vec![1_u16, 2, 2, 16])).prop_map(
        |(credit, floor, room, shards)| {
            let cap = room.map(|room| floor.unwrap_or(-50) + room);
            (credit, floor, cap, if begins_beyond(floor, cap) { 1 } else { shards })
        },
    )
}

/// Whether an account with this guard starts outside the bounds; then only one shard is allowed.
fn begins_beyond(floor: Option<i64>, cap: Option<i64>) -> bool {
    floor.is_some_and(|floor| floor > 0) || cap.is_some_and(|cap| cap < 0)
}

/// The ledger, the model, and the number of requests so far.
struct Ledger {
    store: SharedStore,
    engine: TestEngine,
    model: Model,
    requests: usize,
}

const EXPONENTS: [(&str, u32); 2] = [("USD", 2), ("JPY", 0)];

impl Ledger {
    async fn open(all: &[Bounds]) -> Ledger {
        let store = SharedStore::new();
        let engine = engine(&store, &Provider::default()).await;
        let mut ledger = Ledger { store, engine, model: Model::default(), requests: 0 };
        // Two accounts without a guard, as sources of money.
        let free = [(true, None, None, 1), (true, None, None, 1)];
        for (number, (credit, floor, cap, shards)) in free.iter().chain(all).enumerate() {
            let (asset_code, _) = EXPONENTS[number % 2];
            let (code, normal) = (format!("acc{number}"), if *credit { Credit } else { Debit });
            let order =
                Open { asset: asset(asset_code), normal, shards: *shards, ..guarded(&code, *floor, *cap) };
            open(&ledger.engine, order).await;
            ledger.model.accounts.push(Account::new(code, asset_code, normal, (*floor, *cap)));
        }
        ledger
    }

    fn account(&self, index: Index) -> usize {
        index.index(self.model.accounts.iter().filter(|account| account.code.starts_with("acc")).count())
    }

    /// A receiver for money from `from`: mostly of the same asset, or of another for a conversion.
    fn partner(&self, from: usize, index: Index, same: bool) -> usize {
        if index.index(10) == 0 {
            return self.account(index);
        }
        let own = |account: &usize| *account != from && (*account % 2 == from % 2) == same;
        let count = self.model.accounts.iter().filter(|account| account.code.starts_with("acc")).count();
        let others: Vec<usize> = (0..count).filter(own).collect();
        others[index.index(others.len())]
    }

    fn order(&self, from: usize, to: usize, amount: i64) -> TransferOrder {
        let accounts = &self.model.accounts;
        TransferOrder {
            asset: asset(accounts[from].asset),
            ..order(&accounts[from].code, &accounts[to].code, amount)
        }
    }

    fn fits(&self, from: usize, to: usize) -> bool {
        from != to && self.model.accounts[from].asset == self.model.accounts[to].asset
    }

    /// Sends a request and returns the first two words of the answer.
    async fn ask(&mut self, act: LedgerCommand) -> (String, i64) {
        self.requests += 1;
        match execute(&self.engine, &format!("r{}", self.requests), act).await {
            Submitted::Invalid(_) => ("invalid".into(), 0),
            submitted => {
                let (_, body, _) = answer(&submitted);
                let number = body.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
                (body.split_whitespace().next().unwrap().to_owned(), number)
            }
        }
    }

    /// Sends a request that moves money and compares the answer with the model's.
    async fn move_money(&mut self, act: LedgerCommand, moves: Option<Vec<Moved>>, word: &str) -> Option<i64> {
        let (said, id) = self.ask(act.clone()).await;
        let expected = match &moves {
            None => "invalid",
            Some(moves) => self.model.apply(moves).err().unwrap_or(word),
        };
        assert_eq!(said, expected, "{act:?}");
        (said == word).then_some(id)
    }

    fn record(&mut self, id: i64, posted: Vec<Moved>, reversible: bool) {
        self.model.done.push(Done { id, posted, reversible, reversed: false });
    }

    async fn take(&mut self, step: &Step) {
        match step.clone() {
            Step::OpenAgain(account) => {
                let code = self.model.accounts[self.account(account)].code.clone();
                assert_eq!(self.ask(LedgerCommand::Open(plain(&code))).await.0, "account_exists");
            }
            Step::Transfer(from, to, amount) => {
                let from = self.account(from);
                let to = self.partner(from, to, true);
                let moves =
                    self.fits(from, to).then(|| vec![(from, Debit, amount, 0), (to, Credit, amount, 0)]);
                let act = LedgerCommand::Transfer(self.order(from, to, amount));
                if let Some(id) = self.move_money(act, moves.clone(), "transferred").await {
                    self.record(id, moves.unwrap(), true);
                }
            }
            Step::Hold(from, to, amount, seconds) => self.hold(from, to, amount, seconds).await,
            Step::Post(hold, amount) => self.end(hold, true, amount).await,
            Step::Void(hold) => self.end(hold, false, None).await,
            Step::Legs(legs) => self.post(&legs).await,
            Step::Reverse(transaction) => self.reverse(transaction).await,
            Step::Convert(from, to, amount, rate, rounding) => {
                let from = self.account(from);
                let to = self.partner(from, to, false);
                self.convert(from, to, amount, rate, rounding).await;
            }
            Step::Reshard(account, shards) => {
                let account = &self.model.accounts[self.account(account)];
                let whole = begins_beyond(account.floor, account.cap) && shards > 1;
                let act = LedgerCommand::Reshard { account: named(&account.code), shards };
                assert_eq!(self.ask(act).await.0, if whole { "invalid" } else { "resharded" });
            }
            Step::Many(items) => self.many(&items).await,
            Step::Wait(time) => {
                seconds(time).await;
                // The worker runs twice a second, so no hold lapses between its last run and now.
                let now = self.store.now();
                let lately = |hold: &Held| hold.open && now.since(hold.expires_at) < Span::from_ms(600);
                if self.model.holds.iter().any(|hold| hold.expires_at <= now && lately(hold)) {
                    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
                }
                self.model.lapse(self.store.now());
            }
        }
    }

    async fn hold(&mut self, from: Index, to: Index, amount: i64, seconds: u64) {
        let from = self.account(from);
        let to = self.partner(from, to, true);
        let moves = self.fits(from, to).then(|| vec![(from, Debit, 0, amount), (to, Credit, 0, amount)]);
        let expires_at = self.store.now().plus(Span::from_ms(seconds * 1_000));
        let hold = Some(HoldTerms { expires_at: Some(expires_at) });
        let act = LedgerCommand::Transfer(TransferOrder { hold, ..self.order(from, to, amount) });
        if let Some(id) = self.move_money(act, moves, "held").await {
            self.model.holds.push(Held { id, from, to, amount, expires_at, open: true });
            self.record(id, Vec::new(), false);
        }
    }

    async fn end(&mut self, hold: Index, post: bool, amount: Option<i64>) {
        if self.model.holds.is_empty() {
            return;
        }
        let place = hold.index(self.model.holds.len());
        let Held { id, from, to, amount: held, open, .. } = self.model.holds[place];
        let (posted, word) = if post { (amount.unwrap_or(held), "posted") } else { (0, "voided") };
        let act = if post { post_hold(id, amount) } else { void(id) };
        if !open {
            assert_eq!(self.ask(act).await.0, "hold_ended");
            return;
        }
        let moves = (posted <= held).then(|| vec![(from, Debit, posted, -held), (to, Credit, posted, -held)]);
        if self.move_money(act, moves, word).await.is_some() {
            self.model.holds[place].open = false;
            let by = match hold_row(&self.store, id).await.state {
                HoldState::Posted { by, amount } if post && amount == posted => by,
                HoldState::Voided { by } if !post => by,
                other => panic!("{other:?}"),
            };
            self.record(by.to_i64(), vec![(from, Debit, posted, 0), (to, Credit, posted, 0)], post);
        }
    }

    /// The given legs, and a balancing leg on the account without a guard.
    async fn post(&mut self, legs: &[(Index, i64)]) {
        let mut sums: BTreeMap<usize, i64> = BTreeMap::new();
        for (account, amount) in legs {
            *sums.entry(self.account(*account)).or_default() += amount;
        }
        for free in [0, 1] {
            let of_asset = |account: &usize| account % 2 == free;
            let rest: i64 = sums.iter().filter(|(account, _)| of_asset(account)).map(|(_, sum)| sum).sum();
            *sums.entry(free).or_default() -= rest;
        }
        let moves: Vec<Moved> = sums
            .into_iter()
            .filter(|(_, sum)| *sum != 0)
            .map(|(account, sum)| (account, if sum < 0 { Debit } else { Credit }, sum.abs(), 0))
            .collect();
        let entries = moves
            .iter()
            .map(|(account, side, amount, _)| {
                let account = &self.model.accounts[*account];
                PostLeg {
                    account: named(&account.code),
                    side: *side,
                    amount: *amount,
                    asset: asset(account.asset),
                }
            })
            .collect();
        let act = LedgerCommand::Post(Post { entries, metadata: BTreeMap::new() });
        let whole = (moves.len() >= 2).then(|| moves.clone());
        if let Some(id) = self.move_money(act, whole, "posted").await {
            self.record(id, moves, true);
        }
    }

    async fn reverse(&mut self, transaction: Index) {
        if self.model.done.is_empty() {
            return;
        }
        let place = transaction.index(self.model.done.len());
        let Done { id, reversible, reversed, .. } = self.model.done[place];
        if !reversible || reversed {
            let word = if reversible { "already_reversed" } else { "not_reversible" };
            assert_eq!(self.ask(reverse(id)).await.0, word);
            return;
        }
        let posted = self.model.done[place].posted.clone();
        let mirrored: Vec<Moved> = posted
            .into_iter()
            .map(|(account, side, amount, _)| (account, side.opposite(), amount, 0))
            .collect();
        if let Some(by) = self.move_money(reverse(id), Some(mirrored.clone()), "posted").await {
            self.model.done[place].reversed = true;
            self.record(by, mirrored, false);
        }
    }

    /// Converts at a rate in thousandths, in integer arithmetic.
    async fn convert(&mut self, from: usize, to: usize, amount: i64, thousandths: u32, rounding: Rounding) {
        let (asset_from, asset_to) = (self.model.accounts[from].asset, self.model.accounts[to].asset);
        let minor = |code| 10_i64.pow(EXPONENTS.iter().find(|(known, _)| *known == code).unwrap().1);
        let over = amount * i64::from(thousandths) * minor(asset_to);
        let under = 1_000 * minor(asset_from);
        let (whole, rest) = (over / under, over % under);
        let up = match rounding {
            Rounding::Down => false,
            Rounding::Up => rest > 0,
            Rounding::HalfUp => rest * 2 >= under,
            Rounding::HalfEven => rest * 2 > under || (rest * 2 == under && whole % 2 == 1),
        };
        let (got, paid) = (whole + i64::from(up), whole + i64::from(rest > 0));
        let fits = asset_from != asset_to && got > 0;
        let moves = fits.then(|| {
            let bought = self.chart("exchange", asset_from);
            let sold = self.chart("exchange", asset_to);
            let rounding = self.chart("rounding", asset_to);
            let mut moves =
                vec![(from, Debit, amount, 0), (bought, Credit, amount, 0), (sold, Debit, paid, 0)];
            moves.push((to, Credit, got, 0));
            if paid > got {
                moves.push((rounding, Credit, paid - got, 0));
            }
            moves
        });
        let act = LedgerCommand::Convert(Convert {
            from: named(&self.model.accounts[from].code),
            to: named(&self.model.accounts[to].code),
            amount,
            rate: Rate::new(&Decimal::parse(&format!("{thousandths}e-3")).unwrap()).unwrap(),
            rounding,
            metadata: BTreeMap::new(),
        });
        if let Some(id) = self.move_money(act, moves.clone(), "posted").await {
            self.record(id, moves.unwrap(), true);
        }
    }

    /// An account of the chart, which the model opens on first use.
    fn chart(&mut self, role: &str, asset: &'static str) -> usize {
        let code = format!("chart:{role}:{asset}");
        let known = self.model.accounts.iter().position(|account| account.code == code);
        known.unwrap_or_else(|| {
            self.model.accounts.push(Account::new(code, asset, Credit, (None, None)));
            self.model.accounts.len() - 1
        })
    }

    async fn many(&mut self, items: &[(Index, Index, i64)]) {
        let pair = |(from, to, amount): &(Index, Index, i64)| {
            let from = self.account(*from);
            (from, self.partner(from, *to, true), *amount)
        };
        let items: Vec<(usize, usize, i64)> = items.iter().map(pair).collect();
        let orders: Vec<Item> =
            items.iter().map(|(from, to, amount)| Item::Transfer(self.order(*from, *to, *amount))).collect();
        self.requests += 1;
        let (_, body, _) = answer(&bulk(&self.engine, &format!("r{}", self.requests), &orders).await);
        for ((from, to, amount), result) in items.into_iter().zip(results(&body)) {
            let moves = vec![(from, Debit, amount, 0), (to, Credit, amount, 0)];
            let expected = if self.fits(from, to) { self.model.apply(&moves).err() } else { Some("invalid") };
            match expected {
                Some(word) => assert_eq!(result.split(' ').next(), Some(word)),
                None => self.record(result.parse().unwrap(), moves, true),
            }
        }
    }

    /// Asserts that all balances are equal, and that each asset sums to zero.
    async fn agree(&self) {
        let mut sums: HashMap<&str, i128> = HashMap::new();
        let rows = self.store.scan(Scan::Accounts { after: None, limit: 1_000 }).await.unwrap();
        for row in rows {
            let Row::Account(account) = row else { panic!("{row:?}") };
            let shown = self.engine.balance(Arc::new(account.clone()), Upto::Now).await.unwrap().view;
            let model = self.model.accounts.iter().find(|known| known.code == account.code.as_str());
            assert_eq!(shown, model.map_or(view(0, 0, 0), Account::view), "{}", account.code);
            let (code, _) = EXPONENTS.iter().find(|(code, _)| *code == account.asset.code()).unwrap();
            *sums.entry(code).or_default() +=
                if account.normal == Credit { shown.posted } else { -shown.posted };
        }
        assert!(sums.values().all(|sum| *sum == 0), "{sums:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_and_the_model_say_the_same(
        accounts in prop::collection::vec(bounds(), 3..7),
        steps in prop::collection::vec(step(), 1..50),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut ledger = Ledger::open(&accounts).await;
            for step in &steps {
                ledger.take(step).await;
                ledger.agree().await;
                verified(&ledger.store).await;
            }
        });
    }
}
