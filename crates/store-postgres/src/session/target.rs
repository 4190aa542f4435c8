//! Where the server is and how to talk to it: the store's URL, read.

use super::tls::{Check, Connector};
use crate::error::{OpenError, reason};
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// How long a server may take to answer a new connection.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long the network may swallow what we send before the connection counts as lost.
const UNHEARD_WITHIN: Duration = Duration::from_secs(15);
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);

/// A server.
#[derive(Clone)]
pub(crate) struct Target {
    pub(super) config: Config,
    pub(super) tls: Connector,
}

impl Target {
    /// Reads a URL of libpq's form. `sslmode` may be `disable`, `prefer`, `require` or `verify-full`; `sslrootcert`
    /// names a file of certificates to trust instead of the public ones.
    pub(crate) fn parse(url: &str) -> Result<Target, OpenError> {
        let known = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        if !known {
            return Err(OpenError::BadUrl("its scheme is not postgres".to_owned()));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decoded(value))),
                Some(_) | None => rest.push(pair),
            }
        }
        let (ssl, check) = match mode {
            None | Some("prefer") => (SslMode::Prefer, Check::Nothing),
            Some("disable") => (SslMode::Disable, Check::Nothing),
            Some("require") if roots.is_none() => (SslMode::Require, Check::Nothing),
            Some("require" | "verify-full") => (SslMode::Require, Check::Everything(roots)),
            Some(other) => {
                let words =
                    format!("sslmode={other} is not known; use disable, prefer, require or verify-full");
                return Err(OpenError::BadUrl(words));
            }
        };
        let rest = rest.join("&");
        let whole = if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") };
        let mut config: Config = whole.parse().map_err(|error: tokio_postgres::Error| {
            // The parser's words name an option or a part, never the password.
            OpenError::BadUrl(reason(&error))
        })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(OpenError::BadUrl("it names no database".to_owned()));
        }
        config.ssl_mode(ssl).connect_timeout(CONNECT_WITHIN).tcp_user_timeout(UNHEARD_WITHIN);
        config.keepalives(true).keepalives_idle(KEEPALIVE_AFTER);
        if config.get_application_name().is_none() {
            config.application_name("counterfoil");
        }
        Ok(Target { config, tls: Connector::new(check)? })
    }
}

/// Undoes percent-encoding; what does not read stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration holds the password.
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Target::parse(url).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn urls_that_cannot_be_served_are_refused() {
        for (url, words) in [
            ("mysql://h/d", "scheme"),
            ("postgres://h", "names no database"),
            ("postgres://h/d?sslmode=verify-ca", "verify-full"),
            ("postgres://h/d?nonsense=1", "nonsense"),
            ("postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere", "cannot be secured"),
        ] {
            let message = refused(url);
            assert!(message.contains(words), "{url}: {message}");
        }
        let secret = refused("postgres://u:hunter2@h:port/d");
        assert!(!secret.contains("hunter2"), "{secret}");
    }

    #[test]
    fn modes_of_encryption() {
        for (query, mode) in [
            ("", SslMode::Prefer),
            ("?sslmode=prefer", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?application_name=x&sslmode=require", SslMode::Require),
            ("?sslmode=verify-full", SslMode::Require),
        ] {
            let target = Target::parse(&format!("postgres://u@h/d{query}")).unwrap();
            assert_eq!(target.config.get_ssl_mode(), mode, "{query}");
        }
        assert_eq!(decoded("%2Fetc%2fssl/a b%"), "/etc/ssl/a b%");
    }
}
