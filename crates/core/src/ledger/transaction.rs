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

/// Something that happened in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Minted with the claim.
    pub id: TransactionId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Why it happened.
    pub kind: TransactionKind,
    /// What it moved.
    pub legs: Legs,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
    /// When it was decided, on the store's clock.
    pub at: Time,
}

/// Why a transaction happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// From one account to another.
    Transfer,
    /// Legs as a client gave them.
    General,
    /// One asset for another.
    Conversion,
    /// A charge was captured. The transaction has the charge's own number, so there is at most one.
    Charge(ChargeId),
    /// An earlier transaction is undone.
    Reversal(TransactionId),
    /// Money is reserved. The transaction has the hold's own number.
    Held(HoldId),
    /// A hold was posted, whole or in part.
    HoldPosted(HoldId),
    /// A hold was given up.
    HoldVoided(HoldId),
    /// A hold's deadline passed.
    HoldLapsed(HoldId),
}

impl TransactionKind {
    /// The word clients and stores see.
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

    /// The number of what it is about, where it is about something.
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

    /// The kind of that name about that number.
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
    /// Which account.
    pub account: AccountId,
    /// Which side of it.
    pub side: Side,
    /// Posted for good, or only reserved.
    pub layer: Layer,
    /// Minor units, above zero.
    pub amount: i64,
    /// The account's asset.
    pub asset: Asset,
}

/// Where in the ledger a leg stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// For good.
    Posted,
    /// Reserved by a hold.
    Pending,
    /// No longer reserved: it takes back a pending leg, or a part of one.
    Released,
}

const LAYERS: [Layer; 3] = [Layer::Posted, Layer::Pending, Layer::Released];

impl Layer {
    /// The word clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Posted => "posted",
            Layer::Pending => "pending",
            Layer::Released => "released",
        }
    }

    /// The layer of that name.
    pub fn parse(name: &str) -> Option<Layer> {
        LAYERS.into_iter().find(|layer| layer.name() == name)
    }
}

/// Legs that balance. There is no other way to have any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legs(Vec<Leg>);

/// Why legs do not make a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLegs {
    /// Fewer than two.
    TooFew,
    /// More than [`LEGS_MAX`].
    TooMany,
    /// The amount of this leg is not between 1 and [`AMOUNT_MAX`].
    Amount(usize),
    /// This leg's account stands in an earlier leg of the same layer.
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
        // At most 40 legs of at most 15 digits: no sum comes near the end of an i128.
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

    /// `amount` of `asset` from one account to another: the first is debited, the second credited.
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

    /// The legs that were posted for good; they balance by themselves, as every layer does.
    pub fn posted(&self) -> Legs {
        Legs(self.0.iter().filter(|leg| leg.layer == Layer::Posted).copied().collect())
    }

    /// The same legs with their sides swapped.
    pub fn reversed(&self) -> Legs {
        Legs(self.0.iter().map(|leg| Leg { side: leg.side.opposite(), ..*leg }).collect())
    }

    /// The legs, in order.
    pub fn as_slice(&self) -> &[Leg] {
        &self.0
    }
}

impl Transaction {
    /// The legs as their accounts' histories show them, once it is committed.
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

/// That a transaction was undone: at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The tenant of both transactions.
    pub tenant: TenantId,
    /// What was undone.
    pub original: TransactionId,
    /// By which transaction.
    pub by: TransactionId,
}
