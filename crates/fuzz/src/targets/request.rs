//! Whole requests through the router and the engine: paths, queries, cursors, headers, keys,
//! bodies.
//!
//! Every answer is a success or a problem of the closed list. The same request under the same key
//! gets the same bytes, and the ledger balances at the end.

use crate::mutate::prng_of;
use crate::target::{Check, Kind, Target, texts};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use counterfoil_api::{ApiSettings, App, Metrics, RequestLog, router};
use counterfoil_core::idempotency::claim::LeasePolicy;
use counterfoil_core::idempotency::window;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{Approval, Decline, LookupResult, ProviderOutcome, Rules};
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes};
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::id::EPOCH;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{NewTenant, Service};
use counterfoil_engine::signal::NoWatch;
use counterfoil_engine::verify::verify;
use counterfoil_engine::world::TokioWorld;
use counterfoil_engine::{Engine, Parts};
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile, breaker};
use counterfoil_store::Store;
use counterfoil_store::memory::MemoryStore;
use counterfoil_wire::present::Presenter;
use counterfoil_wire::problem::Code;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

pub(super) const TARGET: Target = Target {
    name: "request",
    seeds,
    words: &[
        "GET ",
        "POST ",
        "/v1/charges",
        "/v1/accounts",
        "/v1/accounts/",
        "/v1/transfers",
        "/v1/transactions",
        "/v1/transactions/bulk",
        "/v1/conversions",
        "/v1/assets",
        "/v1/idempotency-keys/",
        "/balance",
        "/entries",
        "/timeline",
        "/post",
        "/void",
        "/reverse",
        "/shards",
        "?limit=",
        "&starting_after=",
        "?at=",
        "100",
        "101",
        "2026-01-31T12:00:00Z",
        "{charge}",
        "{from}",
        "{to}",
        "{euros}",
        "{transfer}",
        "{transaction}",
        "%2F",
        "%00",
        "%",
        "\nidempotency-key: ",
        "\ncontent-type: application/json",
        "\nauthorization: Bearer sk_other",
        "\ncontent-type: application/x-www-form-urlencoded",
        "\n\n",
        "\"amount\":",
        "\"asset\":\"USD\"",
        "\"currency\":\"usd\"",
        "\"floor\":",
        "\"hold\":true",
        "\"metadata\":{\"a\":\"\\u0000\"}",
        "null",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "1250",
        "-1",
        "1e3",
        "0.5",
    ],
    length_max: 4_096,
    short: 5_000,
    start,
};

/// Requests before the ledger is checked and a new world begins.
const WORLD: u64 = 400;
const SECRET: &str = "sk_fuzz";

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "GET /v1/charges?limit=2&starting_after={charge}",
        "GET /v1/accounts?limit=100",
        "GET /v1/accounts/{from}/balance?at=2026-01-31T14:00:00%2B02:00",
        "GET /v1/accounts/{from}/balance?at=1",
        "GET /v1/accounts/{to}/entries?limit=1",
        "GET /v1/accounts/from",
        "GET /v1/charges/{charge}/timeline",
        "GET /v1/transfers/{transfer}",
        "GET /v1/transactions/{transaction}",
        "GET /v1/transactions?starting_after={transaction}",
        "GET /v1/idempotency-keys/seed-0",
        "GET /v1/assets",
        "GET /errors/not_found",
        "GET /metrics",
        "GET /healthz",
        "DELETE /v1/charges",
        "GET /v1//charges",
        "POST /v1/charges\n\n{\"amount\":1250,\"currency\":\"usd\",\"payment_method\":\"pm_card_visa\",\"metadata\":{\"order\":\"1001\"}}",
        "POST /v1/charges\n\n{\"amount\":13,\"currency\":\"usd\",\"payment_method\":\"pm_card_visa\",\"capture\":false,\"description\":\"x\"}",
        "POST /v1/charges\ncontent-type: application/x-www-form-urlencoded\n\namount=1250&currency=usd&payment_method=pm_1&metadata[a]=b",
        "POST /v1/charges\nidempotency-key: \"seed-0\"\n\n{\"amount\":1}",
        "POST /v1/accounts\n\n{\"code\":\"c\",\"asset\":\"USD\",\"normal_side\":\"credit\",\"floor\":0,\"cap\":500}",
        "POST /v1/accounts/{from}/shards\n\n{\"shards\":4}",
        "POST /v1/transfers\n\n{\"from\":\"{from}\",\"to\":\"{to}\",\"amount\":5,\"currency\":\"USD\"}",
        "POST /v1/transfers\n\n{\"from\":\"{from}\",\"to\":\"{to}\",\"amount\":5,\"currency\":\"USD\",\"hold\":true}",
        "POST /v1/transfers/{transfer}/post\n\n{\"amount\":3}",
        "POST /v1/transfers/{transfer}/void\n\n",
        "POST /v1/transactions\n\n{\"entries\":[{\"account\":\"{from}\",\"direction\":\"debit\",\"amount\":5,\"asset\":\"USD\"},{\"account\":\"{to}\",\"direction\":\"credit\",\"amount\":5,\"asset\":\"USD\"}]}",
        "POST /v1/transactions/bulk\n\n{\"transactions\":[{\"entries\":[{\"account\":\"{from}\",\"direction\":\"debit\",\"amount\":5,\"asset\":\"USD\"},{\"account\":\"{to}\",\"direction\":\"credit\",\"amount\":5,\"asset\":\"USD\"}]}]}",
        "POST /v1/transactions/{transaction}/reverse\n\n{}",
        "POST /v1/conversions\n\n{\"from\":\"{from}\",\"to\":\"{euros}\",\"amount\":100,\"rate\":0.91}",
        "POST /v1/assets\n\n{\"code\":\"POINTS\",\"exponent\":0}",
    ])
}

fn start() -> Check {
    let mut world = World::begin();
    Box::new(move |input| {
        if world.asked >= WORLD {
            world.judge();
            world = World::begin();
        }
        world.check(input)
    })
}

type FuzzEngine = Engine<MemoryStore, Approving, TokioWorld>;

/// A tenant with three accounts, a charge, a transaction and a held transfer.
struct World {
    runtime: Runtime,
    router: Router,
    engine: FuzzEngine,
    /// Replacements for the braces of an input.
    names: Vec<(&'static str, String)>,
    asked: u64,
}

impl World {
    fn begin() -> World {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (engine, router) = runtime.block_on(async {
            let engine = engine().await;
            let app = App::new(Arc::new(engine.clone()), Arc::new(Metrics::new()), settings(), Vec::new());
            (engine, router(app).0)
        });
        let mut world = World { runtime, router, engine, names: Vec::new(), asked: 0 };
        let made = [
            ("{from}", r#"/v1/accounts|{"code":"from","asset":"USD","normal_side":"credit"}"#),
            ("{to}", r#"/v1/accounts|{"code":"to","asset":"USD","normal_side":"credit","floor":0}"#),
            ("{charge}", r#"/v1/charges|{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#),
            ("{euros}", r#"/v1/accounts|{"code":"euros","asset":"EUR","normal_side":"credit"}"#),
            (
                "{transaction}",
                r#"/v1/transactions|{"entries":[{"account":"{from}","direction":"debit","amount":900,"asset":"USD"},{"account":"{to}","direction":"credit","amount":900,"asset":"USD"}]}"#,
            ),
            (
                "{transfer}",
                r#"/v1/transfers|{"from":"{from}","to":"{to}","amount":9,"currency":"USD","hold":true}"#,
            ),
        ];
        for (number, (name, order)) in made.into_iter().enumerate() {
            let (path, body) = order.split_once('|').expect("a path and a body");
            let input = format!("POST {path}\nidempotency-key: seed-{number}\n\n{body}");
            let request = world.request(input.as_bytes()).expect("a request");
            let answer = world.send(request);
            let id = answer.json().and_then(|json| Some(json.get("id")?.as_str()?.to_owned()));
            world.names.push((name, id.unwrap_or_else(|| panic!("{name}: {answer:?}"))));
        }
        world
    }

    fn check(&mut self, input: &[u8]) -> Kind {
        let Some(request) = self.request(input) else { return Kind::of("no request") };
        let again = self.request(input).expect("the same request");
        self.asked += 1;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = self.send(request);
        answer.judge();
        if method == http::Method::POST {
            let replay = self.send(again);
            replay.judge();
            let kept = replay.headers.contains_key("idempotent-replayed");
            assert!(
                kept || !answer.status.is_success(),
                "{path} was done and not kept: {answer:?} {replay:?}"
            );
            if kept {
                assert_eq!(
                    (replay.status, &replay.body),
                    (answer.status, &answer.body),
                    "{path}: another answer"
                );
            }
        }
        let code = answer.json().and_then(|json| Some(json.get("error")?.as_str()?.to_owned()));
        let said = answer.json().map(|json| json["errors"][0]["message"].to_string()).unwrap_or_default();
        let route: Vec<&str> = path.split('/').filter(|part| !part.contains('_')).take(4).collect();
        Kind::of(format!("{method} {route:?} {} {code:?} {said}", answer.status.is_success()))
    }

    /// The request of an input, if HTTP can carry it.
    fn request(&self, input: &[u8]) -> Option<Request<Body>> {
        let end = input.windows(2).position(|pair| pair == b"\n\n");
        let (head, body) = end.map_or((input, &[][..]), |end| (&input[..end], &input[end + 2..]));
        let head = self.named(std::str::from_utf8(head).ok()?);
        let body = std::str::from_utf8(body).map_or(body.to_vec(), |body| self.named(body).into_bytes());
        let mut lines = head.lines();
        let (method, target) = lines.next()?.split_once(' ')?;
        let mut request = Request::builder().method(method).uri(target).header("host", "localhost");
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            request = request.header(name, value.as_bytes());
        }
        let headers = request.headers_ref()?;
        let lacks = |name| !headers.contains_key(name);
        let (plain, nobody, keyless) =
            (lacks("content-type"), lacks("authorization"), lacks("idempotency-key"));
        if plain {
            request = request.header("content-type", "application/json");
        }
        if nobody {
            request = request.header("authorization", format!("Bearer {SECRET}"));
        }
        if keyless {
            request = request.header("idempotency-key", format!("k-{}", prng_of(input).next_u64()));
        }
        request.body(Body::from(body)).ok()
    }

    fn named(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
    }

    fn send(&self, request: Request<Body>) -> Answer {
        let router = self.router.clone();
        self.runtime.block_on(async move {
            let response = router.oneshot(request).await.expect("a router never fails");
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            Answer { status: head.status, headers: head.headers, body }
        })
    }

    /// Checks every invariant.
    fn judge(&self) {
        let report =
            self.runtime.block_on(verify(self.engine.store(), |_| {})).expect("a store that answers");
        assert!(report.holds(), "{:#?}", report.findings());
    }
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    fn judge(&self) {
        if self.status.is_success() {
            return;
        }
        let json = self.json().unwrap_or_else(|| panic!("no problem: {self:?}"));
        let code = Code::ALL.iter().find(|code| json["error"] == code.name());
        let code = code.unwrap_or_else(|| panic!("not of the closed list: {self:?}"));
        assert_eq!(self.status.as_u16(), code.status(), "{self:?}");
        assert!(json["request_id"].is_string(), "{self:?}");
        assert!(!self.status.is_server_error(), "{self:?}");
    }
}

/// A provider that approves, or declines unlucky amounts.
struct Approving;

impl Gateway for Approving {
    fn binding(&self) -> ProviderBinding {
        ProviderBinding { profile: "stripe".into(), endpoint: "http://provider".into() }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        ProviderProfile::named(&binding.profile).expect("a profile").rules
    }

    async fn call(&self, call: ProviderCall) -> ProviderOutcome {
        if call.amount.minor() % 13 == 0 {
            return ProviderOutcome::Declined(Decline {
                code: "card_declined".to_owned(),
                decline_code: Some("do_not_honor".to_owned()),
                reference: None,
            });
        }
        ProviderOutcome::Approved(Approval {
            reference: format!("pi_{}", call.payment),
            stands: call.step.leads_to(),
            amount_minor: call.amount.minor(),
            asset: Some(call.amount.asset()),
            payment: Some(call.payment),
        })
    }

    async fn lookup(&self, _: ProviderLookup) -> LookupResult {
        LookupResult::Nothing
    }
}

async fn engine() -> FuzzEngine {
    let begun = Instant::now();
    let base = EPOCH.plus(Span::from_ms(86_400_000));
    let clock = move || -> Time {
        base.plus(Span::from_ms(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)))
    };
    let store = MemoryStore::new(Arc::new(clock));
    let references = References::new(MacKey::new(store.secret().reveal()));
    let parts = Parts {
        store,
        gateway: Approving,
        world: TokioWorld::new(),
        policy: policy(),
        present: Arc::new(Presenter::new(references)),
        watch: Arc::new(NoWatch),
    };
    let engine = Engine::start(parts).await.expect("an engine");
    let tenant = NewTenant {
        name: "fuzz".to_owned(),
        key_policy: None,
        digest: ApiKey::digest_of(&Masked::new(SECRET)),
        key_id: "key_1".to_owned(),
        scopes: Scopes::DEFAULT,
    };
    engine.create_tenant(tenant).await.expect("a tenant");
    engine
}

fn policy() -> EnginePolicy {
    let day = Span::from_ms(86_400_000);
    EnginePolicy {
        lease: LeasePolicy { lease: Span::from_ms(30_000), ceiling: Span::from_ms(180_000) },
        heartbeat: Span::from_ms(10_000),
        wait: Span::from_ms(5_000),
        windows: window::WindowPolicy { replay: day, tombstone: day, reuse: window::Reuse::AfterTombstone },
        attempts_max: 3,
        backoff: Backoff { base: Span::from_ms(500), cap: Span::from_ms(30_000) },
        poll: Span::from_ms(500),
        batch: 64,
        breaker: breaker::BreakerPolicy { failures: 1_000, open: Span::from_ms(1_000) },
    }
}

fn settings() -> ApiSettings {
    ApiSettings {
        body_limit_bytes: 4_096,
        request_timeout: Duration::from_secs(30),
        header_timeout: Duration::from_secs(30),
        connections_max: 100,
        key_policy: KeyPolicy::Required,
        tenant_requests_per_second: 0,
        tenant_burst: 0,
        request_log: RequestLog::Off,
    }
}
