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
    Capture = "/v1/charges/{id}/capture",
    Void = "/v1/charges/{id}/void",
    Timeline = "/v1/charges/{id}/timeline",
    Refunds = "/v1/refunds",
    Refund = "/v1/refunds/{id}",
    Payouts = "/v1/payouts",
    Payout = "/v1/payouts/{id}",
    PayoutTimeline = "/v1/payouts/{id}/timeline",
    Accounts = "/v1/accounts",
    Account = "/v1/accounts/{id}",
    Balance = "/v1/accounts/{id}/balance",
    Entries = "/v1/accounts/{id}/entries",
    AccountShards = "/v1/accounts/{id}/shards",
    Transfers = "/v1/transfers",
    Transfer = "/v1/transfers/{id}",
    TransferPost = "/v1/transfers/{id}/post",
    TransferVoid = "/v1/transfers/{id}/void",
    TransferTimeline = "/v1/transfers/{id}/timeline",
    Transactions = "/v1/transactions",
    Bulk = "/v1/transactions/bulk",
    Transaction = "/v1/transactions/{id}",
    Reverse = "/v1/transactions/{id}/reverse",
    Conversions = "/v1/conversions",
    Assets = "/v1/assets",
    IdempotencyKey = "/v1/idempotency-keys/{key}",
    DeadLetters = "/v1/dead-letters",
    DeadLetter = "/v1/dead-letters/{id}",
    Resolve = "/v1/dead-letters/{id}/resolve",
    Webhook = "/v1/webhooks/{provider}",
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
        match path.strip_prefix("/v1/") {
            Some(rest) => Route::of_version(rest),
            None => Route::beside(path),
        }
    }

    fn of_version(rest: &str) -> (Route, &str) {
        let (collection, rest) = rest.split_once('/').map_or((rest, None), |(name, rest)| (name, Some(rest)));
        let (parameter, part) = match rest.map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
            None => ("", None),
            // A path that ends with a slash is no route, nor is one with an empty parameter.
            Some((parameter, _)) if parameter.is_empty() || rest.is_some_and(|rest| rest.ends_with('/')) => {
                return (Route::Unmatched, "");
            }
            Some((parameter, part)) => (parameter, Some(part)),
        };
        let route = match (collection, part) {
            ("charges", None) => Route::Charges,
            ("charges", Some("")) => Route::Charge,
            ("charges", Some("capture")) => Route::Capture,
            ("charges", Some("void")) => Route::Void,
            ("charges", Some("timeline")) => Route::Timeline,
            ("refunds", None) => Route::Refunds,
            ("refunds", Some("")) => Route::Refund,
            ("payouts", None) => Route::Payouts,
            ("payouts", Some("")) => Route::Payout,
            ("payouts", Some("timeline")) => Route::PayoutTimeline,
            ("transfers", None) => Route::Transfers,
            ("transfers", Some("")) => Route::Transfer,
            ("transfers", Some("post")) => Route::TransferPost,
            ("transfers", Some("void")) => Route::TransferVoid,
            ("transfers", Some("timeline")) => Route::TransferTimeline,
            ("transactions", None) => Route::Transactions,
            ("transactions", Some("")) if parameter == "bulk" => return (Route::Bulk, ""),
            ("transactions", Some("")) => Route::Transaction,
            ("transactions", Some("reverse")) => Route::Reverse,
            ("accounts", None) => Route::Accounts,
            ("accounts", Some("")) => Route::Account,
            ("accounts", Some("balance")) => Route::Balance,
            ("accounts", Some("entries")) => Route::Entries,
            ("accounts", Some("shards")) => Route::AccountShards,
            ("conversions", None) => Route::Conversions,
            ("assets", None) => Route::Assets,
            ("idempotency-keys", Some("")) => Route::IdempotencyKey,
            ("dead-letters", None) => Route::DeadLetters,
            ("dead-letters", Some("")) => Route::DeadLetter,
            ("dead-letters", Some("resolve")) => Route::Resolve,
            ("webhooks", Some("")) => Route::Webhook,
            _ => return (Route::Unmatched, ""),
        };
        (route, parameter)
    }

    fn beside(path: &str) -> (Route, &str) {
        let route = match path {
            "/healthz" => Route::Healthz,
            "/readyz" => Route::Readyz,
            "/metrics" => Route::Metrics,
            "/openapi.json" => Route::OpenApi,
            "/docs" => Route::Docs,
            "/errors" => Route::Errors,
            _ => {
                let code =
                    path.strip_prefix("/errors/").filter(|code| !code.is_empty() && !code.contains('/'));
                return code.map_or((Route::Unmatched, ""), |code| (Route::ErrorPage, code));
            }
        };
        (route, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_leads_to_its_route() {
        for route in Route::ALL {
            let (template, name) = (route.template(), ["id", "key", "code", "provider"]);
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
            "/v1",
            "/v1/",
            "/v1/charges/a/",
            "/v1/charges/a//",
            "/v1/charges/a/timeline/b",
            "/v1/charges/a/refund",
            "/v1/refunds/",
            "/v1/refunds/a/b",
            "/v1/payouts/",
            "/v1/payouts/a/cancel",
            "/v1/dead-letters/a/resolve/",
            "/v1/dead-letters/resolve/a/b",
            "/v1/accounts/",
            "/v1/accounts//balance",
            "/v1/accounts/a/balance/",
            "/v1/accounts/a/b/balance",
            "/v1/transfers/a/reverse",
            "/v1/transactions/",
            "/v1/transactions/bulk/",
            "/v1/conversions/a",
            "/v1/assets/a",
            "/v1/idempotency-keys",
            "/v1/idempotency-keys/",
            "/v1/idempotency-keys/a/b",
            "/v1/webhooks",
            "/v1/webhooks/",
            "/v1/webhooks/a/b",
            "/errors/",
            "/V1/charges",
            "//v1/charges",
        ] {
            assert_eq!(Route::of(path), (Route::Unmatched, ""), "{path}");
        }
    }
}
