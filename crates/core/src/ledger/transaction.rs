//! Transactions: legs that sum to zero per asset and layer, written once and never changed.

use super::account::Side;
use super::totals::AccountEntry;
use crate::types::asset::Asset;
use crate::types::id::{AccountId, ChargeId, HoldId, TenantId, TransactionId};
use crate::types::limits::{AMOUNT_MAX, LEGS_MAX};
use crate::types::mask::Masked;
use crate::types::position::Position;
use crate::types::time::Time;
use std::collections::BTreeMap;

/// A transaction of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub id: TransactionId,
    pub tenant: TenantId,
    pub kind: TransactionKind,
    pub legs: Legs,
    pub metadata: BTreeMap<String, Masked<String>>,
    /// The time of the decision, on the store's clock.
    pub at: Time,
}

/// Why a transaction happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// From one account to another.
    Transfer,
    /// The client's own legs.
    General,
    Conversion,
    /// A captured charge. The transaction has the charge's own number, so there is at most one.
    Charge(ChargeId),
    /// The reversal of an earlier transaction.
    Reversal(TransactionId),
    /// A reservation. The transaction has the hold's own number.
    Held(HoldId),
    /// A hold was posted, in full or in part.
    HoldPosted(HoldId),
    /// A hold was voided.
    HoldVoided(HoldId),
    /// A hold's deadline passed.
    HoldLapsed(HoldId),
}

impl TransactionKind {
    /// The name clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            TransactionKind::Transfer => "transfer",
            TransactionKind::General => "general",
            TransactionKind::Conversion => "conversion",
            TransactionKind::Charge(_) => "charge",
            TransactionKind::Reversal(_) => "reversal",
            TransactionKind::Held(_) => "held",
            TransactionKind::HoldPosted(_) => "hold_posted",
            TransactionKind::HoldVoided(_) => "hold_voided",
            TransactionKind::HoldLapsed(_) => "hold_lapsed",
        }
    }

    /// The number of the referenced object, if any.
    pub const fn about(self) -> Option<i64> {
        match self {
            TransactionKind::Transfer | TransactionKind::General | TransactionKind::Conversion => None,
            TransactionKind::Charge(charge) => Some(charge.to_i64()),
            TransactionKind::Reversal(original) => Some(original.to_i64()),
            TransactionKind::Held(hold)
            | TransactionKind::HoldPosted(hold)
            | TransactionKind::HoldVoided(hold)
            | TransactionKind::HoldLapsed(hold) => Some(hold.to_i64()),
        }
    }

    /// The kind of that name, about the object with that number.
    pub fn parse(name: &str, about: Option<i64>) -> Option<TransactionKind> {
        let hold = || about.map(HoldId::from_i64);
        match (name, about) {
            ("transfer", None) => Some(TransactionKind::Transfer),
            ("general", None) => Some(TransactionKind::General),
            ("conversion", None) => Some(TransactionKind::Conversion),
            ("charge", Some(charge)) => Some(TransactionKind::Charge(ChargeId::from_i64(charge))),
            ("reversal", Some(original)) => {
                Some(TransactionKind::Reversal(TransactionId::from_i64(original)))
            }
            ("held", _) => hold().map(TransactionKind::Held),
            ("hold_posted", _) => hold().map(TransactionKind::HoldPosted),
            ("hold_voided", _) => hold().map(TransactionKind::HoldVoided),
            ("hold_lapsed", _) => hold().map(TransactionKind::HoldLapsed),
            _ => None,
        }
    }
}

/// One side of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    pub account: AccountId,
    pub side: Side,
    pub layer: Layer,
    /// Minor units, above zero.
    pub amount: i64,
    pub asset: Asset,
}

/// The layer of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Permanent.
    Posted,
    /// Reserved by a hold.
    Pending,
    /// Released from a hold: reverses a pending leg or a part of one.
    Released,
}

const LAYERS: [Layer; 3] = [Layer::Posted, Layer::Pending, Layer::Released];

impl Layer {
    /// The name clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Posted => "posted",
            Layer::Pending => "pending",
            Layer::Released => "released",
        }
    }

    pub fn parse(name: &str) -> Option<Layer> {
        LAYERS.into_iter().find(|layer| layer.name() == name)
    }
}

/// Balanced legs. Every constructor checks or guarantees the balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legs(Vec<Leg>);

/// Why legs do not form a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLegs {
    /// Fewer than two.
    TooFew,
    /// More than [`LEGS_MAX`].
    TooMany,
    /// The amount of this leg is not between 1 and [`AMOUNT_MAX`].
    Amount(usize),
    /// An earlier leg of the same layer has the same account.
    Twice(usize),
    /// Debits and credits of this asset differ.
    Unbalanced(Asset),
}

impl Legs {
    /// Checks that `legs` balance.
    pub fn balanced(legs: Vec<Leg>) -> Result<Legs, BadLegs> {
        if legs.len() < 2 {
            return Err(BadLegs::TooFew);
        }
        if legs.len() > LEGS_MAX {
            return Err(BadLegs::TooMany);
        }
        for (index, leg) in legs.iter().enumerate() {
            if !(1..=AMOUNT_MAX).contains(&leg.amount) {
                return Err(BadLegs::Amount(index));
            }
            if legs.iter().take(index).any(|other| other.account == leg.account && other.layer == leg.layer) {
                return Err(BadLegs::Twice(index));
            }
        }
        // At most 40 legs of at most 15 digits, so no sum nears the limit of an i128.
        for one in &legs {
            let same = legs.iter().filter(|leg| leg.asset == one.asset && leg.layer == one.layer);
            let sum = same.fold(0_i128, |sum, leg| match leg.side {
                Side::Debit => sum.saturating_sub(i128::from(leg.amount)),
                Side::Credit => sum.saturating_add(i128::from(leg.amount)),
            });
            if sum != 0 {
                return Err(BadLegs::Unbalanced(one.asset));
            }
        }
        Ok(Legs(legs))
    }

    /// Moves `amount` of `asset`: debits `from` and credits `to`.
    pub fn transfer(
        from: AccountId,
        to: AccountId,
        amount: i64,
        asset: Asset,
        layer: Layer,
    ) -> Result<Legs, BadLegs> {
        Legs::balanced(vec![
            Leg { account: from, side: Side::Debit, layer, amount, asset },
            Leg { account: to, side: Side::Credit, layer, amount, asset },
        ])
    }

    /// The two legs that take a hold back. Equal amounts on both sides always balance.
    pub fn released_pair(from: AccountId, to: AccountId, amount: i64, asset: Asset) -> Legs {
        let leg = |account, side| Leg { account, side, layer: Layer::Released, amount, asset };
        Legs(vec![leg(from, Side::Debit), leg(to, Side::Credit)])
    }

    /// The legs of the posted layer. They balance, as every layer does.
    pub fn posted(&self) -> Legs {
        Legs(self.0.iter().filter(|leg| leg.layer == Layer::Posted).copied().collect())
    }

    /// The same legs with their sides swapped.
    pub fn reversed(&self) -> Legs {
        Legs(self.0.iter().map(|leg| Leg { side: leg.side.opposite(), ..*leg }).collect())
    }

    pub fn as_slice(&self) -> &[Leg] {
        &self.0
    }
}

impl Transaction {
    /// The legs as entries of their accounts, after the commit.
    pub fn entries(&self, position: Position, at: Time) -> impl Iterator<Item = AccountEntry> {
        (0_u16..).zip(self.legs.as_slice()).map(move |(number, leg)| AccountEntry {
            transaction: self.id,
            leg: number,
            position,
            at,
            account: leg.account,
            side: leg.side,
            layer: leg.layer,
            amount: leg.amount,
            asset: leg.asset,
        })
    }
}

/// The reversal of a transaction. At most one exists per transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reversal {
    pub tenant: TenantId,
    /// The reversed transaction.
    pub original: TransactionId,
    /// The reversing transaction.
    pub by: TransactionId,
}
