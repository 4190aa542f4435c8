//! Authentication, authorization and the tenant's rate limit.

use super::Call;
use crate::answer::store_unavailable;
use counterfoil_core::tenancy::{ApiKey, Scope};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::mask::Masked;
use counterfoil_engine::service::Principal;
use counterfoil_wire::problem::{Code, Problem};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::sync::Arc;
use tokio::time::timeout_at;

/// Longest secret looked up; real ones have fewer than 64 characters.
const SECRET_BYTES_MAX: usize = 255;

impl Call {
    /// Checks, in this order: API key, scope, rate. The exchange knows the principal as soon as the
    /// key is found.
    pub(crate) async fn admit(&self, scope: Scope) -> Result<Arc<Principal>, Problem> {
        let app = &self.app;
        let digest = secret(&self.headers).ok_or(Problem::new(Code::Unauthorized))?;
        let principal = match timeout_at(self.deadline(), app.service.principal(digest)).await {
            Ok(Ok(Some(principal))) => principal,
            Ok(Ok(None)) => return Err(Problem::new(Code::Unauthorized)),
            Ok(Err(_)) | Err(_) => return Err(store_unavailable()),
        };
        app.metrics.name_tenant(&principal);
        let _ = self.exchange.principal.set(Arc::clone(&principal));
        if !principal.scopes.allow(scope) {
            return Err(Problem::new(Code::Forbidden).detail(format!(
                "This API key may not do that. Use a key with the scope `{}`.",
                scope.name()
            )));
        }
        if let Some(limiter) = &app.rate_limiter
            && let Err(wait) = limiter.admit(principal.tenant, app.service.now())
        {
            return Err(Problem::new(Code::RateLimited).retry_after(wait.ms().div_ceil(1_000)));
        }
        Ok(principal)
    }
}

/// The digest of the secret in the one `Authorization: Bearer sk_…` header.
fn secret(headers: &HeaderMap) -> Option<Digest> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    let secret = secret.trim();
    let fits = secret.len() <= SECRET_BYTES_MAX && secret.bytes().all(|byte| byte.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && secret.starts_with("sk_") && fits)
        .then(|| ApiKey::digest_of(&Masked::new(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(values: &[&str]) -> Option<Digest> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        secret(&headers)
    }

    #[test]
    fn exactly_one_bearer_secret_is_accepted() {
        let expected = ApiKey::digest_of(&Masked::new("sk_a"));
        for good in ["Bearer sk_a", "bearer sk_a", "BEARER  sk_a "] {
            assert_eq!(of(&[good]), Some(expected), "{good}");
        }
        let long = format!("Bearer sk_{}", "x".repeat(300));
        for bad in [
            "",
            "sk_a",
            "Basic sk_a",
            "Bearer",
            "Bearer ",
            "Bearer pk_a",
            "Bearersk_a",
            "Bearer sk_a b",
            "Bearer sk_é",
            &long,
        ] {
            assert_eq!(of(&[bad]), None, "{bad}");
        }
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["Bearer sk_a", "Bearer sk_a"]), None);
    }
}
