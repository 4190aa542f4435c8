//! The rules for values: each kind of setting has a rule that parses raw values.
//!
//! A refusal completes a sentence that starts with the setting's name. The value is quoted only if
//! the kind cannot hold a credential.

use std::fmt::Display;
use std::net::SocketAddr;

use counterfoil_core::types::limits::{
    WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_SECRETS_MAX,
};
use counterfoil_core::types::mask::Masked;

use super::choice::Choice;
use super::problem::quoted;
use super::secret::SecretUrl;

/// A raw value from a layer. No `Debug`, because it may be a credential.
pub(super) enum Raw {
    /// Text from the environment or a flag, of any kind.
    Bare(String),
    Quoted(String),
    /// A TOML integer, in decimal if it fits 128 bits, else as written.
    Integer(String),
    List(Vec<String>),
    /// A TOML value of a kind that no setting has, named with its article.
    Other(&'static str),
}

impl Raw {
    fn digits(&self) -> Result<&str, &'static str> {
        match self {
            Raw::Bare(text) | Raw::Integer(text) => Ok(text),
            Raw::Quoted(_) => Err("a string"),
            Raw::List(_) => Err("an array"),
            Raw::Other(kind) => Err(kind),
        }
    }

    fn text(&self) -> Result<&str, &'static str> {
        match self {
            Raw::Bare(text) | Raw::Quoted(text) => Ok(text),
            Raw::Integer(_) => Err("an integer"),
            Raw::List(_) => Err("an array"),
            Raw::Other(kind) => Err(kind),
        }
    }

    /// The text, checked. U+FFFD stands for bytes outside UTF-8.
    fn clean_text(&self) -> Result<&str, String> {
        let text = self.text().map_err(|kind| format!("must be a string, not {kind}"))?;
        if text.is_empty() {
            return Err("must not be empty; remove it to get the default".to_owned());
        }
        if text.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
            return Err("must be UTF-8 text without control characters".to_owned());
        }
        Ok(text)
    }
}

/// Parsing, default and documentation of one kind of setting.
pub(super) trait Rule {
    type Value;

    fn read(&self, raw: &Raw) -> Result<Self::Value, String>;
    fn default(&self) -> Self::Value;
    fn default_text(&self) -> Option<String>;
    fn allowed(&self) -> String;
}

/// A whole number from `min` to `max`.
pub(super) struct Whole<T> {
    default: T,
    min: T,
    max: T,
}

impl<T> Whole<T> {
    pub(super) const fn new(default: T, min: T, max: T) -> Whole<T> {
        Whole { default, min, max }
    }
}

impl<T: Copy + PartialOrd + Display + TryFrom<i128>> Rule for Whole<T> {
    type Value = T;

    fn read(&self, raw: &Raw) -> Result<T, String> {
        let refused = |what: String| format!("must be {}, not {what}", self.allowed());
        let digits = raw.digits().map_err(|kind| refused(kind.to_owned()))?;
        let number = digits.parse::<i128>().ok().and_then(|wide| T::try_from(wide).ok());
        number.filter(|n| (self.min..=self.max).contains(n)).ok_or_else(|| refused(quoted(digits)))
    }

    fn default(&self) -> T {
        self.default
    }

    fn default_text(&self) -> Option<String> {
        Some(self.default.to_string())
    }

    fn allowed(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }
}

/// A word of a closed list.
pub(super) struct OneOf<C> {
    default: C,
}

impl<C> OneOf<C> {
    pub(super) const fn new(default: C) -> OneOf<C> {
        OneOf { default }
    }
}

impl<C: Choice> Rule for OneOf<C> {
    type Value = C;

    fn read(&self, raw: &Raw) -> Result<C, String> {
        let refused = |what: String| format!("must be {}, not {what}", self.allowed());
        let text = raw.text().map_err(|kind| refused(kind.to_owned()))?;
        let chosen = C::ALL.iter().copied().find(|choice| choice.word() == text);
        chosen.ok_or_else(|| refused(quoted(text)))
    }

    fn default(&self) -> C {
        self.default
    }

    fn default_text(&self) -> Option<String> {
        Some(self.default.word().to_owned())
    }

    fn allowed(&self) -> String {
        let words: Vec<String> = C::ALL.iter().map(|choice| format!("`{}`", choice.word())).collect();
        match words.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

/// An IP address and port. No default, because a safe address depends on the command.
pub(super) struct Address;

impl Rule for Address {
    type Value = Option<SocketAddr>;

    fn read(&self, raw: &Raw) -> Result<Option<SocketAddr>, String> {
        let refused = |what: String| format!("must be {}, not {what}", self.allowed());
        let text = raw.text().map_err(|kind| refused(kind.to_owned()))?;
        text.parse().map(Some).map_err(|_| refused(quoted(text)))
    }

    fn default(&self) -> Option<SocketAddr> {
        None
    }

    fn default_text(&self) -> Option<String> {
        None
    }

    fn allowed(&self) -> String {
        "an IP address and port such as `127.0.0.1:8080` or `[::1]:8080`".to_owned()
    }
}

/// Text, validated where it is used.
pub(super) struct Text {
    pub(super) default: &'static str,
}

impl Rule for Text {
    type Value = String;

    fn read(&self, raw: &Raw) -> Result<String, String> {
        raw.clean_text().map(str::to_owned)
    }

    fn default(&self) -> String {
        self.default.to_owned()
    }

    fn default_text(&self) -> Option<String> {
        Some(self.default.to_owned())
    }

    fn allowed(&self) -> String {
        "a string".to_owned()
    }
}

/// The store URL, checked when the store is opened. Never quoted, because it may hold a password.
pub(super) struct StoreUrl {
    pub(super) default: &'static str,
}

impl Rule for StoreUrl {
    type Value = SecretUrl;

    fn read(&self, raw: &Raw) -> Result<SecretUrl, String> {
        raw.clean_text().map(SecretUrl::new)
    }

    fn default(&self) -> SecretUrl {
        SecretUrl::new(self.default)
    }

    fn default_text(&self) -> Option<String> {
        Some(self.default.to_owned())
    }

    fn allowed(&self) -> String {
        "a path or a store URL".to_owned()
    }
}

/// A URL that may hold a credential, so a refusal does not quote it. Only the shape is checked
/// here; the connector parses the rest.
pub(super) struct CredentialUrl {
    has_shape: fn(&SecretUrl) -> bool,
    credential: &'static str,
    allowed: &'static str,
}

impl CredentialUrl {
    /// The payment provider. Only a URL with a visible key can be masked; others are refused here.
    pub(super) const GATEWAY: CredentialUrl = CredentialUrl {
        has_shape: SecretUrl::has_credential_and_host,
        credential: "a key",
        allowed: "a URL such as `stripe+http://KEY@host:port`",
    };
    /// A peer and our account there.
    pub(super) const PEER: CredentialUrl = CredentialUrl {
        has_shape: SecretUrl::has_credential_and_host,
        credential: "a key",
        allowed: "a URL such as `counterfoil+https://KEY@host:port/ac_…`",
    };
    /// Redis or Valkey; the password is optional.
    pub(super) const REDIS: CredentialUrl = CredentialUrl {
        has_shape: is_redis,
        credential: "a password",
        allowed: "a URL such as `redis://host:6379` or `rediss://:PASSWORD@host:6379/0`",
    };
}

impl Rule for CredentialUrl {
    type Value = Option<SecretUrl>;

    fn read(&self, raw: &Raw) -> Result<Option<SecretUrl>, String> {
        let url = SecretUrl::new(raw.clean_text()?);
        if (self.has_shape)(&url) {
            return Ok(Some(url));
        }
        Err(format!("must be {} (the value is not shown, as it may hold {})", self.allowed, self.credential))
    }

    fn default(&self) -> Option<SecretUrl> {
        None
    }

    fn default_text(&self) -> Option<String> {
        None
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }
}

fn is_redis(url: &SecretUrl) -> bool {
    const SCHEMES: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];
    url.reveal().split_once("://").is_some_and(|(scheme, rest)| SCHEMES.contains(&scheme) && !rest.is_empty())
}

/// A list of secrets, never quoted in a refusal.
pub(super) struct SecretList;

impl Rule for SecretList {
    type Value = Vec<Masked<String>>;

    fn read(&self, raw: &Raw) -> Result<Vec<Masked<String>>, String> {
        let refused = || format!("must be {} (the value is not shown)", self.allowed());
        let words: Vec<&str> = match raw {
            Raw::List(words) => words.iter().map(String::as_str).collect(),
            Raw::Bare(text) | Raw::Quoted(text) => text.split(',').map(str::trim).collect(),
            Raw::Integer(_) | Raw::Other(_) => return Err(refused()),
        };
        let fits = |word: &&str| {
            let length = WEBHOOK_SECRET_BYTES_MIN..=WEBHOOK_SECRET_BYTES_MAX;
            length.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
        };
        if !(1..=WEBHOOK_SECRETS_MAX).contains(&words.len()) || !words.iter().all(fits) {
            return Err(refused());
        }
        Ok(words.into_iter().map(|word| Masked::new(word.to_owned())).collect())
    }

    fn default(&self) -> Vec<Masked<String>> {
        Vec::new()
    }

    fn default_text(&self) -> Option<String> {
        None
    }

    fn allowed(&self) -> String {
        format!(
            "1 to {WEBHOOK_SECRETS_MAX} secrets of {WEBHOOK_SECRET_BYTES_MIN} to {WEBHOOK_SECRET_BYTES_MAX} visible ASCII characters, as a list or with commas between them"
        )
    }
}
