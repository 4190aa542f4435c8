//! Accounts: a balance in one asset, within bounds.

use super::balance::Guarded;
use crate::types::asset::Asset;
use crate::types::id::{AccountId, TenantId};
use crate::types::limits::ACCOUNT_CODE_BYTES_MAX;
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::collections::BTreeMap;
use std::fmt;

/// An account. Everything except the number of shards is fixed when it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    pub tenant: TenantId,
    /// The tenant's own code for the account.
    pub code: AccountCode,
    pub asset: Asset,
    /// The increasing side.
    pub normal: Side,
    pub guard: Guard,
    /// The number of shards of the guarded balance, 1 to 256. Meaningless for an account without a
    /// guard.
    pub shards: u16,
    /// The largest number of shards so far. Shards outside the current spread may still hold money.
    pub widest: u16,
    /// The tenant's own metadata.
    pub metadata: BTreeMap<String, Masked<String>>,
    pub created_at: Time,
    pub revision: u64,
}

/// A side of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Debit,
    Credit,
}

impl Side {
    /// The name clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Debit => "debit",
            Side::Credit => "credit",
        }
    }

    pub fn parse(name: &str) -> Option<Side> {
        [Side::Debit, Side::Credit].into_iter().find(|side| side.name() == name)
    }

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
    /// The lower bound of the available balance.
    pub floor: Option<i64>,
    /// The upper bound of the posted and of the expected balance.
    pub cap: Option<i64>,
}

impl Guard {
    /// Whether a bound exists. Only then does the store keep a balance row that writes must check.
    pub const fn is_set(&self) -> bool {
        self.floor.is_some() || self.cap.is_some()
    }

    /// The existing bounds.
    pub const fn guarded(&self) -> Guarded {
        Guarded { floor: self.floor.is_some(), cap: self.cap.is_some() }
    }
}

/// An account's code: 1–64 letters, digits and `_ - . : /`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountCode(String);

/// The text is not an account's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCode;

impl AccountCode {
    /// Parses a code. Codes of the chart ([`super::chart`]) are valid too.
    pub fn parse(text: &str) -> Result<AccountCode, BadCode> {
        let fits = (1..=ACCOUNT_CODE_BYTES_MAX).contains(&text.len());
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte));
        if fits && begins && plain { Ok(AccountCode(text.to_owned())) } else { Err(BadCode) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A row that makes codes unique: the tenant's code is taken by an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountName {
    pub tenant: TenantId,
    pub code: AccountCode,
    pub account: AccountId,
}

impl Account {
    /// Whether `next` is a legal successor of the account. Only the number of shards changes.
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
