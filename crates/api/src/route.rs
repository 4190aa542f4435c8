//! Which route a path belongs to: the bounded label of metrics and logs, and the way to a path's parameter without
//! an extractor. A test holds it to the router.

macro_rules! routes {
    ($($name:ident = $template:literal,)+) => {
        /// A route, by its template.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Route { $($name,)+ }

        impl Route {
            pub(crate) const ALL: &'static [Route] = &[$(Route::$name,)+];

            pub(crate) const fn template(self) -> &'static str {
                match self { $(Route::$name => $template,)+ }
            }
        }
    };
}

routes! {
    Charges = "/v1/charges",
    Charge = "/v1/charges/{id}",
    Timeline = "/v1/charges/{id}/timeline",
    IdempotencyKey = "/v1/idempotency-keys/{key}",
    Healthz = "/healthz",
    Readyz = "/readyz",
    Metrics = "/metrics",
    OpenApi = "/openapi.json",
    Docs = "/docs",
    Errors = "/errors",
    ErrorPage = "/errors/{code}",
    Unmatched = "unmatched",
}

impl Route {
    /// The route of a path, and its parameter as it stands there.
    pub(crate) fn of(path: &str) -> (Route, &str) {
        let under = |prefix: &str| {
            let rest = path.strip_prefix(prefix)?;
            (!rest.is_empty() && !rest.contains('/')).then_some(rest)
        };
        match path {
            "/v1/charges" => (Route::Charges, ""),
            "/healthz" => (Route::Healthz, ""),
            "/readyz" => (Route::Readyz, ""),
            "/metrics" => (Route::Metrics, ""),
            "/openapi.json" => (Route::OpenApi, ""),
            "/docs" => (Route::Docs, ""),
            "/errors" => (Route::Errors, ""),
            _ => {
                if let Some(id) = under("/v1/charges/") {
                    (Route::Charge, id)
                } else if let Some(key) = under("/v1/idempotency-keys/") {
                    (Route::IdempotencyKey, key)
                } else if let Some(code) = under("/errors/") {
                    (Route::ErrorPage, code)
                } else if let Some((id, "timeline")) =
                    path.strip_prefix("/v1/charges/").and_then(|rest| rest.split_once('/'))
                    && !id.is_empty()
                {
                    (Route::Timeline, id)
                } else {
                    (Route::Unmatched, "")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_leads_to_its_route() {
        for route in Route::ALL {
            let (template, name) = (route.template(), ["id", "key", "code"]);
            let path =
                name.iter().fold(template.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), "x"));
            let parameter = if path == template { "" } else { "x" };
            assert_eq!(Route::of(&path), (*route, parameter), "{path}");
        }
    }

    #[test]
    fn near_misses_match_nothing() {
        for path in [
            "",
            "/",
            "*",
            "/v1/charges/",
            "/v1/charges//timeline",
            "/v1/charges/a/b",
            "/v1/charges/a/timeline/",
            "/v1/idempotency-keys/",
            "/v1/idempotency-keys/a/b",
            "/errors/",
            "/V1/charges",
            "//v1/charges",
        ] {
            assert_eq!(Route::of(path), (Route::Unmatched, ""), "{path}");
        }
    }
}
