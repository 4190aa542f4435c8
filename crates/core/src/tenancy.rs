//! Tenants and their API keys. The store keeps the digest of a secret and never the secret.

use crate::types::digest::Digest;
use crate::types::id::TenantId;
use crate::types::limits::TENANT_NAME_BYTES_MAX;
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::fmt;

/// A tenant: the owner of accounts, payments and API keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Leads every key of the tenant's rows.
    pub id: TenantId,
    /// The name for operators.
    pub name: TenantName,
    /// Whether writes must carry a key; `None` means the server's policy.
    pub key_policy: Option<KeyPolicy>,
    pub created_at: Time,
    pub revision: u64,
}

/// A tenant's name: 1–64 lower-case letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// The text is not a tenant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTenantName;

impl TenantName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<TenantName, BadTenantName> {
        let fits = (1..=TENANT_NAME_BYTES_MAX).contains(&text.len());
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        if fits && plain { Ok(TenantName(text.to_owned())) } else { Err(BadTenantName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether writes must carry a key. Enforcement is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPolicy {
    /// Keys are optional, and requests without one are counted.
    Optional,
    /// Requests without a key are refused.
    Required,
}

impl KeyPolicy {
    /// The name in settings and stores.
    pub const fn name(self) -> &'static str {
        match self {
            KeyPolicy::Optional => "optional",
            KeyPolicy::Required => "required",
        }
    }

    pub fn parse(name: &str) -> Option<KeyPolicy> {
        [KeyPolicy::Optional, KeyPolicy::Required].into_iter().find(|policy| policy.name() == name)
    }
}

/// A stored API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// The digest of the whole secret. Requests look keys up by this digest.
    pub digest: Digest,
    /// The name for operators, `key_…`.
    pub id: String,
    pub tenant: TenantName,
    pub scopes: Scopes,
    pub created_at: Time,
    pub revoked_at: Option<Time>,
    pub revision: u64,
}

impl ApiKey {
    /// The digest that identifies `secret`. Secrets have 256 random bits, so one hash is enough.
    pub fn digest_of(secret: &Masked<impl AsRef<str>>) -> Digest {
        Digest::of("counterfoil/api-key/1", &[secret.reveal().as_ref().as_bytes()])
    }
}

/// A permission of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Read the tenant's own objects.
    Read,
    /// Move money.
    Write,
    /// Use operator routes.
    Admin,
}

const SCOPES: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

impl Scope {
    /// The name in commands and stores.
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
    /// The default scopes of a new key.
    pub const DEFAULT: Scopes = Scopes(Scope::Read.bit() | Scope::Write.bit());

    pub const ALL: Scopes = Scopes(Scope::Read.bit() | Scope::Write.bit() | Scope::Admin.bit());

    /// Whether the set contains `scope`.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The names, joined by commas.
    pub fn names(self) -> String {
        let names: Vec<&str> =
            SCOPES.into_iter().filter(|scope| self.allow(*scope)).map(Scope::name).collect();
        names.join(",")
    }

    /// Parses names joined by commas; at least one.
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
    fn tenant_names_are_short_and_plain() {
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
    fn scopes_parse_back_from_their_names() {
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
