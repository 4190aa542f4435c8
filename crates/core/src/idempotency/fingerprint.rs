//! Fingerprints decide which requests are the same. A fingerprint is the SHA-256 of a tenant's
//! canonical method, path, query and parsed body. It omits everything that varies between retries:
//! headers, key order, white space and the spelling of numbers.

use crate::types::digest::Digest;
use crate::types::id::TenantId;
use crate::types::json::{self, Json};
use std::fmt;

/// The canonical digest of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(Digest);

/// The parts of a request that define its identity.
#[derive(Clone, Copy, Debug)]
pub struct FingerprintInput<'a> {
    pub tenant: TenantId,
    /// The method in upper case.
    pub method: &'a str,
    /// The path as routed, without the query.
    pub path: &'a str,
    pub query: &'a [(String, String)],
    /// The parsed body. Equal bodies of different media types parse to equal values.
    pub body: &'a Json,
}

impl Fingerprint {
    pub fn of(request: FingerprintInput<'_>) -> Fingerprint {
        let mut query: Vec<_> = request.query.iter().collect();
        query.sort();
        let mut parts: Vec<&[u8]> = Vec::with_capacity(query.len().saturating_mul(2).saturating_add(4));
        let tenant = request.tenant.to_i64().to_be_bytes();
        let mut body = Vec::with_capacity(256);
        json::canonical(request.body, &mut body);
        parts.extend([tenant.as_slice(), request.method.as_bytes(), request.path.as_bytes(), &body]);
        for (name, value) in query {
            parts.extend([name.as_bytes(), value.as_bytes()]);
        }
        Fingerprint(Digest::of("counterfoil/fingerprint/1", &parts))
    }

    pub const fn from_digest(digest: Digest) -> Fingerprint {
        Fingerprint(digest)
    }

    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, path: &str, query: &[(&str, &str)], tenant: i64, body: &str) -> Fingerprint {
        let query: Vec<_> =
            query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let body = Json::parse(body.as_bytes()).unwrap();
        Fingerprint::of(FingerprintInput {
            tenant: TenantId::from_i64(tenant),
            method,
            path,
            query: &query,
            body: &body,
        })
    }

    fn body(text: &str) -> Fingerprint {
        of("POST", "/v1/charges", &[], 1, text)
    }

    #[test]
    fn golden_fingerprint() {
        let fingerprint = body(r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa"}"#);
        assert_eq!(
            fingerprint.digest().hex(),
            "a248c5a280e36bea39deab81f6756058d9d55a836fe7963bc580f4fe5c4a1247"
        );
    }

    #[test]
    fn spellings_of_one_request_have_one_fingerprint() {
        let first = body(r#"{"amount":1250,"currency":"USD"}"#);
        for other in [
            r#"{"currency":"USD","amount":1250}"#,
            " {\n\t\"amount\" : 1250.0 , \"currency\" : \"\\u0055SD\" } ",
            r#"{"amount":1.25e3,"currency":"USD"}"#,
            r#"{"amount":12500E-1,"currency":"USD"}"#,
        ] {
            assert_eq!(body(other), first, "{other}");
        }
        let query = [("a", "1"), ("b", "2")];
        assert_eq!(of("POST", "/x", &query, 1, "{}"), of("POST", "/x", &[("b", "2"), ("a", "1")], 1, "{}"));
    }

    #[test]
    fn different_requests_have_different_fingerprints() {
        let first = of("POST", "/v1/charges", &[], 1, r#"{"amount":9007199254740992}"#);
        for other in [
            of("POST", "/v1/charges", &[], 1, r#"{"amount":9007199254740993}"#),
            of("POST", "/v1/charges", &[], 1, r#"{"amount":"9007199254740992"}"#),
            of("POST", "/v1/charges", &[], 2, r#"{"amount":9007199254740992}"#),
            of("PUT", "/v1/charges", &[], 1, r#"{"amount":9007199254740992}"#),
            of("POST", "/v1/refunds", &[], 1, r#"{"amount":9007199254740992}"#),
            of("POST", "/v1/charges", &[("a", "1")], 1, r#"{"amount":9007199254740992}"#),
        ] {
            assert_ne!(other, first);
        }
    }
}
