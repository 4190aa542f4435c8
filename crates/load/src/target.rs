//! The target of the load: the `http://host:port` of a `--url` flag, parsed and resolved once.
//!
//! Paths, user names and TLS are refused with an explanation.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::LoadError;

/// Long enough for any network on which a benchmark makes sense.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest name DNS allows.
const NAME_BYTES_MAX: usize = 253;

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// IPv6 addresses keep their brackets, as the `Host` header needs them.
    name: String,
    port: u16,
}

impl Target {
    /// Parses `http://host`, `http://host:port` or `http://[v6]:port`, with or without a final
    /// slash.
    pub fn parse(url: &str) -> Result<Self, LoadError> {
        let refuse = |reason| LoadError::Url { url: url.to_owned(), reason };
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(refuse("write it as http://host:port"));
        };
        if scheme.eq_ignore_ascii_case("https") {
            return Err(refuse(
                "the load generator does not speak TLS; give the http:// address behind the TLS end point",
            ));
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(refuse("only http:// is understood"));
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(refuse("give the server's address only, without a path"));
        }
        if authority.contains('@') {
            return Err(refuse("give the key with --api-key, not inside the URL"));
        }
        let (name, port) = split_port(authority);
        if !is_host(name) {
            return Err(refuse("the host must be a name, an IPv4 address or an IPv6 address in brackets"));
        }
        let port = match port {
            None => 80,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| refuse("the port must be 1 to 65535"))?,
            Some(_) => return Err(refuse("the port must be 1 to 65535")),
        };
        Ok(Self { name: name.to_owned(), port })
    }

    /// The value of the `Host` header.
    pub fn host(&self) -> String {
        format!("{}:{}", self.name, self.port)
    }

    /// The first address of the host that accepts a connection: `localhost` often has two and one
    /// listener.
    pub async fn resolve(&self) -> Result<SocketAddr, LoadError> {
        let unresolved = |source| LoadError::Resolve { host: self.host(), source };
        let mut refused = unresolved(std::io::Error::from(std::io::ErrorKind::NotFound));
        for addr in lookup_host(self.host()).await.map_err(unresolved)? {
            match timeout(CONNECT_LIMIT, TcpStream::connect(addr)).await {
                Ok(Ok(_)) => return Ok(addr),
                Ok(Err(source)) => refused = LoadError::Connect { addr, source },
                Err(late) => refused = LoadError::Connect { addr, source: late.into() },
            }
        }
        Err(refused)
    }
}

/// A colon inside brackets belongs to the address.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        Some(_) | None => (authority, None),
    }
}

fn is_host(name: &str) -> bool {
    if let Some(inner) = name.strip_prefix('[') {
        return inner.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        for (url, host) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://localhost:8080/", "localhost:8080"),
            ("HTTP://pay.example.com", "pay.example.com:80"),
            ("http://[::1]:9", "[::1]:9"),
            ("http://[::1]", "[::1]:80"),
        ] {
            assert_eq!(Target::parse(url).unwrap().host(), host, "{url}");
        }
    }

    #[test]
    fn unusable_urls_are_refused_with_a_reason() {
        for (url, says) in [
            ("https://pay.example.com", "TLS"),
            ("127.0.0.1:8080", "http://host:port"),
            ("ftp://host", "only http://"),
            ("http://host:1/v1/charges", "without a path"),
            ("http://host?x=1", "without a path"),
            ("http://sk_test@host", "--api-key"),
            ("http://", "host must be"),
            ("http://:80", "host must be"),
            ("http://a b", "host must be"),
            ("http://host\r\nX: 1", "host must be"),
            ("http://::1:80", "host must be"),
            ("http://[::zz]:80", "host must be"),
            ("http://host:", "1 to 65535"),
            ("http://host:0", "1 to 65535"),
            ("http://host:65536", "1 to 65535"),
            ("http://host:+80", "1 to 65535"),
        ] {
            let message = Target::parse(url).unwrap_err().to_string();
            assert!(message.contains(says), "{url}: {message}");
        }
    }

    #[tokio::test]
    async fn a_host_resolves_to_the_address_that_listens() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let target = Target::parse(&format!("http://localhost:{}", addr.port())).unwrap();
        assert_eq!(target.resolve().await.unwrap(), addr);
        drop(listener);
        let message = target.resolve().await.unwrap_err().to_string();
        assert!(message.contains("is the server running"), "{message}");
    }
}
