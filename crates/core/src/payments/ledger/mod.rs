//! Keeping the ledger: requests that need no provider, decided and answered in one commit.

pub mod decide;

use crate::ledger::account::{AccountCode, Guard, Side};
use crate::ledger::convert::{Rate, Rounding};
use crate::types::asset::Asset;
use crate::types::id::{AccountId, HoldId, TransactionId};
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::collections::BTreeMap;

/// A client's own pairs.
pub type Metadata = BTreeMap<String, Masked<String>>;

/// An account as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccountSelector {
    /// By its reference.
    Id(AccountId),
    /// By the tenant's own code.
    Code(AccountCode),
}

/// What a client asks of the ledger.
#[derive(Clone, Debug)]
pub enum LedgerCommand {
    /// Open an account.
    Open(Open),
    /// Define an asset of one's own.
    Define {
        /// Its code; not a currency's.
        asset: Asset,
        /// Its decimals.
        exponent: u8,
    },
    /// Spread a guarded account over another number of shards.
    Reshard {
        /// Which account.
        account: AccountSelector,
        /// 1 to 256.
        shards: u16,
    },
    /// Move money from one account to another, or reserve it.
    Transfer(TransferOrder),
    /// End a hold.
    End {
        /// Which.
        hold: HoldId,
        /// How.
        how: End,
    },
    /// Post legs.
    Post(Post),
    /// Undo a transaction.
    Reverse {
        /// Which.
        transaction: TransactionId,
    },
    /// Change one asset for another.
    Convert(Convert),
}

/// An account to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The tenant's own name for it.
    pub code: AccountCode,
    /// What it counts.
    pub asset: Asset,
    /// The side that raises it.
    pub normal: Side,
    /// Its bounds.
    pub guard: Guard,
    /// Its spread, 1 to 256.
    pub shards: u16,
    /// The client's own pairs.
    pub metadata: Metadata,
}

/// A transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOrder {
    /// Debited.
    pub from: AccountSelector,
    /// Credited.
    pub to: AccountSelector,
    /// Minor units, above zero.
    pub amount: i64,
    /// What is moved.
    pub asset: Asset,
    /// Only reserve it.
    pub hold: Option<HoldTerms>,
    /// The client's own pairs.
    pub metadata: Metadata,
}

/// How long money is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldTerms {
    /// When it lapses; absent means after [`decide::HOLD_DEFAULT`].
    pub expires_at: Option<Time>,
}

/// How a hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The money is moved, all of it or so much.
    Post {
        /// How much; absent means all.
        amount: Option<i64>,
    },
    /// The money is free again.
    Void,
}

/// Legs to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// As the client gave them.
    pub entries: Vec<PostLeg>,
    /// The client's own pairs.
    pub metadata: Metadata,
}

/// A leg to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostLeg {
    /// Which account.
    pub account: AccountSelector,
    /// Which side.
    pub side: Side,
    /// Minor units, above zero.
    pub amount: i64,
    /// The account's asset.
    pub asset: Asset,
}

/// One asset for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convert {
    /// Debited, in its own asset.
    pub from: AccountSelector,
    /// Credited, in its own asset.
    pub to: AccountSelector,
    /// Minor units of the first account's asset.
    pub amount: i64,
    /// Units of the second asset per unit of the first.
    pub rate: Rate,
    /// What happens to fractions of a minor unit.
    pub rounding: Rounding,
    /// The client's own pairs.
    pub metadata: Metadata,
}

/// One of many transactions of a bulk request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A transfer; never held.
    Transfer(TransferOrder),
    /// Legs.
    Post(Post),
}

/// Why a request was refused for good, though it was well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRefusal {
    /// A balance is too low.
    InsufficientFunds,
    /// A balance would pass its cap.
    CapExceeded,
    /// The code belongs to another account.
    AccountExists,
    /// The asset is defined already, or is a currency.
    AssetExists,
    /// The transaction was undone before.
    AlreadyReversed,
    /// A transaction of this kind is not undone: holds have their own ends, reversals are final.
    NotReversible,
    /// The hold has ended.
    HoldEnded,
}

impl LedgerRefusal {
    /// The word clients see as `error`.
    pub const fn name(self) -> &'static str {
        match self {
            LedgerRefusal::InsufficientFunds => "insufficient_funds",
            LedgerRefusal::CapExceeded => "cap_exceeded",
            LedgerRefusal::AccountExists => "account_exists",
            LedgerRefusal::AssetExists => "asset_exists",
            LedgerRefusal::AlreadyReversed => "already_reversed",
            LedgerRefusal::NotReversible => "not_reversible",
            LedgerRefusal::HoldEnded => "hold_ended",
        }
    }
}
