//! Server address and API key in one URL: `PROTOCOL+https://KEY@host[:port][/path]`. Errors never
//! repeat any part of the URL, because a malformed URL may carry the key anywhere.

use counterfoil_core::types::mask::Masked;
use http::Uri;
use http::header::HeaderValue;

/// A parsed address URL.
pub struct Address {
    /// Scheme, host and port.
    pub endpoint: String,
    pub is_https: bool,
    pub key: Masked<String>,
    /// The path after the host, without its leading slash.
    pub path: String,
}

/// The reasons for refusing an address URL. No variant carries text from the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The scheme is missing or is not `PROTOCOL+http` or `PROTOCOL+https`.
    Scheme,
    KeyMissing,
    /// The credential has characters that no API key has.
    KeyUnusable,
    /// The host is missing or malformed.
    Host,
    /// The URL has a query or a fragment.
    Query,
}

impl Address {
    /// Parses a URL of the given protocol.
    pub fn parse(url: &str, protocol: &str) -> Result<Address, AddressError> {
        let rest = url.strip_prefix(protocol).and_then(|rest| rest.strip_prefix('+'));
        let (scheme, rest) = rest.and_then(|rest| rest.split_once("://")).ok_or(AddressError::Scheme)?;
        if scheme != "http" && scheme != "https" {
            return Err(AddressError::Scheme);
        }
        let (key, host_and_path) = rest.rsplit_once('@').ok_or(AddressError::KeyMissing)?;
        if key.is_empty() {
            return Err(AddressError::KeyMissing);
        }
        if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.~".contains(&byte)) {
            return Err(AddressError::KeyUnusable);
        }
        if host_and_path.contains(['?', '#']) {
            return Err(AddressError::Query);
        }
        let (host, path) = host_and_path.split_once('/').unwrap_or((host_and_path, ""));
        let endpoint = format!("{scheme}://{}", host.to_ascii_lowercase());
        let uri: Uri = endpoint.parse().map_err(|_| AddressError::Host)?;
        // An authority with an invalid port still parses, with no port; refuse it here.
        let has_valid_port =
            |port: Option<_>| port.is_some() || !host.trim_end_matches(char::is_numeric).ends_with(':');
        if uri.host().is_none_or(str::is_empty) || !has_valid_port(uri.port()) {
            return Err(AddressError::Host);
        }
        Ok(Address {
            endpoint,
            is_https: scheme == "https",
            key: Masked::new(key.to_owned()),
            path: path.to_owned(),
        })
    }

    /// The `Authorization` header `Bearer KEY`, marked as sensitive.
    pub fn authorization(&self) -> Result<HeaderValue, AddressError> {
        let mut header = HeaderValue::try_from(format!("Bearer {}", self.key.reveal()))
            .map_err(|_| AddressError::KeyUnusable)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// Joins an endpoint and a path; `None` if the result is not a URI.
pub fn uri_at(endpoint: &str, path: &str) -> Option<Uri> {
    Uri::try_from([endpoint, path].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_addresses_are_refused() {
        for (url, error) in [
            ("", AddressError::Scheme),
            ("https://SECRET@host", AddressError::Scheme),
            ("one://SECRET@host", AddressError::Scheme),
            ("one+ftp://SECRET@host", AddressError::Scheme),
            ("two+http://SECRET@host", AddressError::Scheme),
            ("SECRET", AddressError::Scheme),
            ("one+http://host:1", AddressError::KeyMissing),
            ("one+http://@host:1", AddressError::KeyMissing),
            ("one+http://SECRET:x@host", AddressError::KeyUnusable),
            ("one+http://SECRET%20@host", AddressError::KeyUnusable),
            ("one+http://SECRET\r\nX: y@host", AddressError::KeyUnusable),
            ("one+http://SECRET@x@host", AddressError::KeyUnusable),
            ("one+http://SECRET@", AddressError::Host),
            ("one+http://SECRET@/path", AddressError::Host),
            ("one+http://SECRET@:80", AddressError::Host),
            ("one+http://SECRET@host:", AddressError::Host),
            ("one+http://SECRET@host:99999", AddressError::Host),
            ("one+http://SECRET@ho st", AddressError::Host),
            ("one+http://SECRET@host?a=b", AddressError::Query),
            ("one+http://SECRET@host/a#b", AddressError::Query),
        ] {
            assert_eq!(Address::parse(url, "one").err(), Some(error), "{url:?}");
        }
    }

    #[test]
    fn a_url_is_parsed_and_its_key_is_not_printed() {
        for (url, endpoint, path) in [
            ("one+http://sk_test_1@127.0.0.1:8080", "http://127.0.0.1:8080", ""),
            ("one+http://sk_test_1@127.0.0.1:8080/", "http://127.0.0.1:8080", ""),
            ("one+https://sk_test_1@API.example.com", "https://api.example.com", ""),
            ("one+https://sk_test_1@host:8443/a/B", "https://host:8443", "a/B"),
            ("one+http://sk_test_1@[::1]:80", "http://[::1]:80", ""),
        ] {
            let address = Address::parse(url, "one").unwrap_or_else(|error| panic!("{url}: {error:?}"));
            assert_eq!((address.endpoint.as_str(), address.path.as_str()), (endpoint, path));
            assert_eq!(address.is_https, url.starts_with("one+https"));
            assert_eq!(address.key.reveal(), "sk_test_1");
            let header = address.authorization().unwrap();
            assert_eq!(header, "Bearer sk_test_1");
            assert!(!format!("{header:?}").contains("sk_test_1"));
        }
    }
}
