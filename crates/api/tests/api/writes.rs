//! Fixtures: a few accounts and charges, and a valid request for every write route.

use crate::client::Request;
use crate::server::Server;
use serde_json::Value;

/// A valid write request.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) status: u16,
    pub(crate) object: &'static str,
    /// A different request to the same target.
    pub(crate) other: String,
    /// An API key with the scope, and one without.
    pub(crate) keys: (&'static str, &'static str),
}

impl Write {
    pub(crate) fn with(&self, key: &str) -> Request {
        self.sending(key, &self.body)
    }

    /// The same request with another body.
    pub(crate) fn sending(&self, key: &str, body: &str) -> Request {
        Request::post(&self.target, key, body).by(self.keys.0)
    }
}

/// Creates an object and returns the body of the answer.
pub(crate) async fn make(server: &Server, target: &str, key: &str, body: &str) -> Value {
    let reply = server.ask(Request::post(target, key, body)).await;
    assert!([200, 201].contains(&reply.status), "{target} {body}: {}", reply.text());
    reply.json()
}

pub(crate) fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

/// Accounts `a`, `b` in USD and `e` in EUR.
pub(crate) async fn open_accounts(server: &Server) {
    for (code, asset) in [("a", "usd"), ("b", "usd"), ("e", "eur")] {
        let body = format!(r#"{{"code":"{code}","asset":"{asset}"}}"#);
        make(server, "/v1/accounts", &format!("open-{code}"), &body).await;
    }
}

pub(crate) const TRANSFER: &str = r#"{"from":"a","to":"b","amount":100,"currency":"usd"}"#;
pub(crate) const HOLD: &str = r#"{"from":"a","to":"b","amount":100,"currency":"usd","hold":true}"#;
pub(crate) const POST: &str = r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}]}"#;

const CHARGE: &str = r#"{"amount":100,"currency":"usd","payment_method":"pm"}"#;
const HELD: &str = r#"{"amount":100,"currency":"usd","payment_method":"pm","capture":false}"#;

/// A valid request for every route that creates or changes payments, with all necessary charges.
async fn payments(server: &Server) -> Vec<Write> {
    let captured = make(server, "/v1/charges", "captured", HELD).await;
    let voided = make(server, "/v1/charges", "voided", HELD).await;
    let refunded = make(server, "/v1/charges", "refunded", CHARGE).await;
    make(server, "/v1/charges", "parked", CHARGE).await;
    let letter = server.fake.park();
    let writer = ("sk_acme", "sk_acme_read");
    let refund = |amount: i64| format!(r#"{{"charge":"{}","amount":{amount}}}"#, id(&refunded));
    vec![
        Write {
            target: format!("/v1/charges/{}/capture", id(&captured)),
            body: r#"{"amount":60}"#.to_owned(),
            status: 200,
            object: "charge",
            other: r#"{"amount":61}"#.to_owned(),
            keys: writer,
        },
        Write {
            target: format!("/v1/charges/{}/void", id(&voided)),
            body: "{}".to_owned(),
            status: 200,
            object: "charge",
            other: r#"{"amount":61}"#.to_owned(),
            keys: writer,
        },
        Write {
            target: "/v1/refunds".to_owned(),
            body: refund(60),
            status: 201,
            object: "refund",
            other: refund(61),
            keys: writer,
        },
        Write {
            target: "/v1/payouts".to_owned(),
            body: r#"{"amount":60,"currency":"usd","destination":"ba_1"}"#.to_owned(),
            status: 201,
            object: "payout",
            other: r#"{"amount":61,"currency":"usd"}"#.to_owned(),
            keys: writer,
        },
        Write {
            target: format!("/v1/dead-letters/{letter}/resolve"),
            body: r#"{"resolution":"adopt"}"#.to_owned(),
            status: 200,
            object: "dead_letter_resolution",
            other: r#"{"resolution":"retry"}"#.to_owned(),
            keys: ("sk_acme_admin", "sk_acme"),
        },
    ]
}

/// A valid request for every write route except charges, with all necessary objects.
pub(crate) async fn writes(server: &Server) -> Vec<Write> {
    open_accounts(server).await;
    let held = make(server, "/v1/transfers", "held", HOLD).await;
    let given_up = make(server, "/v1/transfers", "given-up", HOLD).await;
    let posted = make(server, "/v1/transactions", "posted", POST).await;
    let bulk = format!(r#"{{"transactions":[{TRANSFER},{POST}]}}"#);
    let convert = r#"{"from":"a","to":"e","amount":1000,"rate":"0.9215"}"#;
    let write = |target: String, body: &str, status, object, other: String| Write {
        target,
        body: body.to_owned(),
        status,
        object,
        other,
        keys: ("sk_acme", "sk_acme_read"),
    };
    let more = |body: &str| body.replace(":100", ":101").replace(":5,", ":6,");
    let mut writes = vec![
        write(
            "/v1/accounts".to_owned(),
            r#"{"code":"new","asset":"USD"}"#,
            201,
            "account",
            r#"{"code":"newer","asset":"USD"}"#.to_owned(),
        ),
        write(
            "/v1/accounts/a/shards".to_owned(),
            r#"{"shards":4}"#,
            200,
            "account",
            r#"{"shards":5}"#.to_owned(),
        ),
        write("/v1/transfers".to_owned(), TRANSFER, 201, "transfer", more(TRANSFER)),
        write(
            format!("/v1/transfers/{}/post", id(&held)),
            r#"{"amount":60}"#,
            200,
            "transfer",
            r#"{"amount":61}"#.to_owned(),
        ),
        write(
            format!("/v1/transfers/{}/void", id(&given_up)),
            "{}",
            200,
            "transfer",
            r#"{"amount":61}"#.to_owned(),
        ),
        write("/v1/transactions".to_owned(), POST, 201, "transaction", more(POST)),
        write("/v1/transactions/bulk".to_owned(), &bulk, 200, "bulk", more(&bulk)),
        write(
            format!("/v1/transactions/{}/reverse", id(&posted)),
            "{}",
            201,
            "transaction",
            r#"{"amount":61}"#.to_owned(),
        ),
        write("/v1/conversions".to_owned(), convert, 201, "transaction", convert.replace("1000", "1001")),
        write(
            "/v1/assets".to_owned(),
            r#"{"code":"points","exponent":0}"#,
            201,
            "asset",
            r#"{"code":"miles","exponent":0}"#.to_owned(),
        ),
    ];
    writes.extend(payments(server).await);
    writes
}
