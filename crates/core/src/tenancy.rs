//! Tenants and their API keys. A key's secret is never kept, only its digest.

use crate::types::digest::Digest;
use crate::types::id::TenantId;
use crate::types::limits::TENANT_NAME_BYTES_MAX;
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::fmt;

/// Somebody whose money is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Leads every key of its rows.
    pub id: TenantId,
    /// What operators call it.
    pub name: TenantName,
    /// Whether writes must carry a key; absent means the server's own policy.
    pub key_policy: Option<KeyPolicy>,
    /// When it was made.
    pub created_at: Time,
    pub revision: u64,
}

/// A tenant's name: 1–64 lower-case letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// A text that is no tenant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTenantName;

impl TenantName {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<TenantName, BadTenantName> {
        let fits = (1..=TENANT_NAME_BYTES_MAX).contains(&text.len());
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        if fits && plain { Ok(TenantName(text.to_owned())) } else { Err(BadTenantName) }
    }

    /// The name's characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Staged enforcement of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPolicy {
    /// Used if present; absence is counted.
    Optional,
    /// Absence is refused.
    Required,
}

impl KeyPolicy {
    /// The word in settings and stores.
    pub const fn name(self) -> &'static str {
        match self {
            KeyPolicy::Optional => "optional",
            KeyPolicy::Required => "required",
        }
    }

    /// The policy of that name.
    pub fn parse(name: &str) -> Option<KeyPolicy> {
        [KeyPolicy::Optional, KeyPolicy::Required].into_iter().find(|policy| policy.name() == name)
    }
}

/// An API key as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Digest of the whole secret; how a request finds the key.
    pub digest: Digest,
    /// What operators call it, `key_…`.
    pub id: String,
    pub tenant: TenantName,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Time,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
    pub revision: u64,
}

impl ApiKey {
    /// The digest under which `secret` is looked up. Secrets carry 256 bits of chance, so one hash is enough.
    pub fn digest_of(secret: &Masked<impl AsRef<str>>) -> Digest {
        Digest::of("counterfoil/api-key/1", &[secret.reveal().as_ref().as_bytes()])
    }
}

/// One thing a key may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Look at the tenant's own objects.
    Read,
    /// Move money.
    Write,
    /// Operator routes.
    Admin,
}

const SCOPES: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

impl Scope {
    /// The word in commands and stores.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Scope::Read => 1,
            Scope::Write => 2,
            Scope::Admin => 4,
        }
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// What a key may do unless its maker says otherwise.
    pub const DEFAULT: Scopes = Scopes(Scope::Read.bit() | Scope::Write.bit());

    /// Everything.
    pub const ALL: Scopes = Scopes(Scope::Read.bit() | Scope::Write.bit() | Scope::Admin.bit());

    /// Whether `scope` is among them.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The words, joined by commas.
    pub fn names(self) -> String {
        let names: Vec<&str> =
            SCOPES.into_iter().filter(|scope| self.allow(*scope)).map(Scope::name).collect();
        names.join(",")
    }

    /// From words joined by commas; at least one.
    pub fn parse(text: &str) -> Option<Scopes> {
        let mut bits = 0;
        for word in text.split(',') {
            bits |= SCOPES.into_iter().find(|scope| scope.name() == word.trim())?.bit();
        }
        Some(Scopes(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "acme-1", &"x".repeat(64)] {
            assert!(TenantName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "Acme", "a b", "a/b", "é", &"x".repeat(65)] {
            assert!(TenantName::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(TenantName::parse("acme-1").unwrap().as_str(), "acme-1");
    }

    #[test]
    fn golden_key_policies() {
        for (policy, word) in [(KeyPolicy::Optional, "optional"), (KeyPolicy::Required, "required")] {
            assert_eq!((policy.name(), KeyPolicy::parse(word)), (word, Some(policy)));
        }
        assert_eq!(KeyPolicy::parse("xyzzy"), None);
    }

    #[test]
    fn scopes_survive_their_words() {
        for words in ["read", "read,write", "admin", "read,write,admin"] {
            assert_eq!(Scopes::parse(words).unwrap().names(), words);
        }
        assert_eq!(Scopes::parse("read,root"), None);
        assert_eq!(Scopes::parse(""), None);
        assert_eq!(
            (Scopes::DEFAULT.names().as_str(), Scopes::ALL.names().as_str()),
            ("read,write", "read,write,admin")
        );
        for scope in SCOPES {
            let only = Scopes::parse(scope.name()).unwrap();
            assert_eq!(SCOPES.map(|other| only.allow(other)), SCOPES.map(|other| other == scope));
        }
    }
}
