//! The parsed Redis URL. Error messages never contain its password.

use redis::{Client, ConnectionInfo, IntoConnectionInfo, TlsCertificates};
use std::path::Path;

/// A Redis URL that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Redis URL cannot be used: {0}; write redis://[:password@]host:port[/database], or rediss:// for TLS"
)]
pub struct RedisUrlError(String);

/// URL schemes, and whether they mean TLS.
const SCHEMES: [(&str, bool); 4] =
    [("redis://", false), ("rediss://", true), ("valkey://", false), ("valkeys://", true)];

/// A server to connect to.
pub(crate) struct Target {
    pub(crate) client: Client,
}

impl Target {
    /// Reads a URL. With TLS, `?sslrootcert=PATH` names a file of trusted certificates that
    /// replaces the public ones.
    pub(crate) fn parse(url: &str) -> Result<Target, RedisUrlError> {
        let bad = |why: &str| RedisUrlError(why.to_owned());
        let (_, is_tls) = SCHEMES
            .into_iter()
            .find(|(scheme, _)| url.starts_with(scheme))
            .ok_or_else(|| bad("its scheme is neither redis nor rediss"))?;
        if url.contains('#') {
            return Err(bad("it has a fragment; a '#' in a password is written %23"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut roots = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "sslrootcert" || !is_tls {
                return Err(bad("rediss:// may have ?sslrootcert=PATH, and no other option"));
            }
            roots = Some(certificates(Path::new(&*value))?);
        }
        let info: ConnectionInfo =
            base.into_connection_info().map_err(|error| RedisUrlError(reason(&error)))?;
        let client = if is_tls {
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: roots })
        } else {
            Client::open(info)
        };
        Ok(Target { client: client.map_err(|error| RedisUrlError(reason(&error)))? })
    }
}

fn certificates(path: &Path) -> Result<Vec<u8>, RedisUrlError> {
    let unreadable =
        |why: &str| RedisUrlError(format!("the certificates in {} do not read: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| unreadable(&error.to_string()))?;
    let is_pem = pem.windows(11).any(|part| part == b"-----BEGIN ");
    if is_pem { Ok(pem) } else { Err(unreadable("there are none")) }
}

/// The client's message names a part of the URL, never its text.
fn reason(error: &redis::RedisError) -> String {
    error.to_string().to_lowercase()
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The client holds the password.
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::ConnectionAddr;

    fn refused(url: &str) -> String {
        Target::parse(url).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn urls_that_cannot_be_used_are_refused() {
        for (url, words) in [
            ("", "scheme"),
            ("localhost:6379", "scheme"),
            ("http://h", "scheme"),
            ("unix:///run/redis.sock", "scheme"),
            ("redis://", "hostname"),
            ("redis://h:port", "did not parse"),
            ("redis://h:6379/main", "database"),
            ("redis://h?protocol=resp3", "sslrootcert"),
            ("redis://h?sslrootcert=/a", "sslrootcert"),
            ("rediss://h#insecure", "%23"),
            ("rediss://h?sslrootcert=/nowhere", "/nowhere"),
        ] {
            let message = refused(url);
            assert!(message.contains(words), "{url}: {message}");
            assert!(message.contains("redis://[:password@]host:port"), "{message}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "redis://:hunter2@h:port",
            "redis://u:hunter2@h/main",
            "rediss://:hunter2@h?a=b",
            "x://:hunter2@h",
        ] {
            assert!(!refused(url).contains("hunter2"), "{}", refused(url));
        }
        let target = Target::parse("redis://u:hunter2@h").unwrap();
        assert!(!format!("{target:?}").contains("hunter2"));
    }

    #[test]
    fn the_parts_of_a_url_are_read() {
        let target = Target::parse("redis://:p%23w@example.com:7000/3").unwrap();
        let info = target.client.get_connection_info();
        assert_eq!(info.redis_settings().password(), Some("p#w"));
        assert_eq!(info.redis_settings().db(), 3);
        assert!(matches!(info.addr(), ConnectionAddr::Tcp(host, 7000) if host == "example.com"));
        let target = Target::parse("rediss://h").unwrap();
        let address = target.client.get_connection_info().addr().clone();
        assert!(matches!(address, ConnectionAddr::TcpTls { port: 6379, insecure: false, .. }), "{address:?}");
        assert!(Target::parse("valkey://h").is_ok());
    }
}
