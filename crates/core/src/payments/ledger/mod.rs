//! Ledger commands: requests without a provider, decided and answered in one commit.

pub mod decide;

use crate::ledger::account::{AccountCode, Guard, Side};
use crate::ledger::convert::{Rate, Rounding};
use crate::types::asset::Asset;
use crate::types::id::{AccountId, HoldId, TransactionId};
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::collections::BTreeMap;

pub type Metadata = BTreeMap<String, Masked<String>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccountSelector {
    /// By reference.
    Id(AccountId),
    /// By the tenant's own code.
    Code(AccountCode),
}

/// A client's command to the ledger.
#[derive(Clone, Debug)]
pub enum LedgerCommand {
    /// Open an account.
    Open(Open),
    /// Define a tenant's own asset.
    Define {
        /// Its code, different from every currency's.
        asset: Asset,
        /// Its decimals.
        exponent: u8,
    },
    /// Change the number of shards of a guarded account.
    Reshard {
        account: AccountSelector,
        /// 1 to 256.
        shards: u16,
    },
    /// Move money from one account to another, or reserve it.
    Transfer(TransferOrder),
    /// End a hold.
    End {
        hold: HoldId,
        how: End,
    },
    /// Post legs.
    Post(Post),
    /// Reverse a transaction.
    Reverse {
        transaction: TransactionId,
    },
    Convert(Convert),
}

/// An account to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The tenant's own code for the account.
    pub code: AccountCode,
    pub asset: Asset,
    /// The increasing side.
    pub normal: Side,
    /// The floor and the cap.
    pub guard: Guard,
    /// The number of shards, 1 to 256.
    pub shards: u16,
    pub metadata: Metadata,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOrder {
    /// The account to debit.
    pub from: AccountSelector,
    /// The account to credit.
    pub to: AccountSelector,
    /// Minor units, above zero.
    pub amount: i64,
    pub asset: Asset,
    /// The terms of a hold, if the money is only reserved.
    pub hold: Option<HoldTerms>,
    pub metadata: Metadata,
}

/// The lifetime of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldTerms {
    /// When it lapses; `None` means after [`decide::HOLD_DEFAULT`].
    pub expires_at: Option<Time>,
}

/// The end of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Move the money.
    Post {
        /// The amount to move; `None` means all.
        amount: Option<i64>,
    },
    /// Release the money.
    Void,
}

/// Legs to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// In the client's order.
    pub entries: Vec<PostLeg>,
    pub metadata: Metadata,
}

/// A leg to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostLeg {
    pub account: AccountSelector,
    pub side: Side,
    /// Minor units, above zero.
    pub amount: i64,
    /// The account's asset.
    pub asset: Asset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convert {
    /// The account to debit, in its own asset.
    pub from: AccountSelector,
    /// The account to credit, in its own asset.
    pub to: AccountSelector,
    /// Minor units of the first account's asset.
    pub amount: i64,
    /// Units of the second asset per unit of the first.
    pub rate: Rate,
    /// The treatment of fractions of a minor unit.
    pub rounding: Rounding,
    pub metadata: Metadata,
}

/// One of the transactions of a bulk request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A transfer; never held.
    Transfer(TransferOrder),
    Post(Post),
}

/// Why a well-formed request was refused for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRefusal {
    /// A balance would fall below its floor.
    InsufficientFunds,
    /// A balance would rise above its cap.
    CapExceeded,
    /// The code belongs to another account.
    AccountExists,
    /// The asset is already defined, or is a currency.
    AssetExists,
    /// The transaction was reversed before.
    AlreadyReversed,
    /// Transactions of this kind are not reversible: holds end in their own ways, and reversals are
    /// final.
    NotReversible,
    /// The hold has ended.
    HoldEnded,
}

impl LedgerRefusal {
    /// The `error` code clients see.
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
