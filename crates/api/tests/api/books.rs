//! Books to test with: a few accounts, and one good request of every route that writes to them.

use crate::client::Request;
use crate::server::Server;
use serde_json::Value;

/// A good write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) status: u16,
    pub(crate) object: &'static str,
    /// Another request to the same target.
    pub(crate) other: String,
}

impl Write {
    pub(crate) fn with(&self, key: &str) -> Request {
        Request::post(&self.target, key, &self.body)
    }
}

/// Makes something and hands its body over.
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

/// One good write of every route about the books, with the accounts and holds it needs.
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
    };
    let more = |body: &str| body.replace(":100", ":101").replace(":5,", ":6,");
    vec![
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
    ]
}
