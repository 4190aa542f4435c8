//! Accounts: where money stands, in one asset, with the bounds its balance must keep.

use super::balance::Guarded;
use crate::types::asset::Asset;
use crate::types::id::{AccountId, TenantId};
use crate::types::limits::ACCOUNT_CODE_BYTES_MAX;
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::fmt;

/// An account. All of it but its shards is fixed when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Minted when it was opened.
    pub id: AccountId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The tenant's own name for it.
    pub code: AccountCode,
    /// What it counts.
    pub asset: Asset,
    /// The side that raises its balance.
    pub normal: Side,
    /// The bounds of its balance.
    pub guard: Guard,
    /// Rows its guarded balance is spread over, 1 to 256. An account without a guard needs none and may say anything.
    pub shards: u16,
    /// The most shards it ever had: money may still stand in them.
    pub widest: u16,
    /// The tenant's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
    /// When it was opened.
    pub created_at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// A side of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Left.
    Debit,
    /// Right.
    Credit,
}

impl Side {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Debit => "debit",
            Side::Credit => "credit",
        }
    }

    /// The side of that name.
    pub fn parse(name: &str) -> Option<Side> {
        [Side::Debit, Side::Credit].into_iter().find(|side| side.name() == name)
    }

    /// The other side.
    pub const fn opposite(self) -> Side {
        match self {
            Side::Debit => Side::Credit,
            Side::Credit => Side::Debit,
        }
    }
}

/// The bounds of an account's balance, in terms of its normal side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// What is available never falls below this.
    pub floor: Option<i64>,
    /// What is posted or expected never rises above this.
    pub cap: Option<i64>,
}

impl Guard {
    /// Whether there is any bound: only then a balance is kept in the way of writes.
    pub const fn is_set(&self) -> bool {
        self.floor.is_some() || self.cap.is_some()
    }

    /// Which bounds there are.
    pub const fn guarded(&self) -> Guarded {
        Guarded { floor: self.floor.is_some(), cap: self.cap.is_some() }
    }
}

/// An account's code: 1–64 letters, digits and `_ - . : /`, the first a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountCode(String);

/// A text that is no account's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCode;

impl AccountCode {
    /// Checks a code. Codes of the chart ([`super::chart`]) are codes too.
    pub fn parse(text: &str) -> Result<AccountCode, BadCode> {
        let fits = (1..=ACCOUNT_CODE_BYTES_MAX).contains(&text.len());
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte));
        if fits && begins && plain { Ok(AccountCode(text.to_owned())) } else { Err(BadCode) }
    }

    /// The code's characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tenant's code taken by an account: what makes codes unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountName {
    /// Whose it is.
    pub tenant: TenantId,
    /// The code.
    pub code: AccountCode,
    /// The account it names.
    pub account: AccountId,
}

impl Account {
    /// Whether `next` may stand where this account stands: only its spread changes.
    pub fn may_become(&self, next: &Account) -> bool {
        let same = Account {
            shards: next.shards,
            widest: next.widest,
            revision: next.revision,
            metadata: BTreeMap::new(),
            ..self.clone()
        };
        next.widest >= self.widest
            && next.shards <= next.widest
            && next.metadata == self.metadata
            && same == Account { metadata: BTreeMap::new(), ..next.clone() }
    }
}
