//! The ledger as clients see it: creating, ending, reversing and reading.

use crate::client::Request;
use crate::server::{Server, settings};
use crate::writes::{HOLD, POST, TRANSFER, id, make, open_accounts, writes};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn get(server: &Server, target: &str) -> Value {
    let reply = server.ask(Request::get(target)).await;
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply.json()
}

fn ids(list: &Value) -> Vec<&str> {
    assert_eq!(list["object"], "list");
    list["data"].as_array().unwrap().iter().map(id).collect()
}

fn balance_of(balance: &Value) -> [i64; 5] {
    ["posted", "pending", "available", "incoming", "position"].map(|name| balance[name].as_i64().unwrap())
}

#[tokio::test]
async fn absent_and_foreign_objects_are_not_found() {
    let server = Server::start().await;
    open_accounts(&server).await;
    let account = get(&server, "/v1/accounts/a").await;
    let held = make(&server, "/v1/transfers", "h", HOLD).await;
    let posted = make(&server, "/v1/transactions", "p", POST).await;
    let targets = [
        format!("/v1/accounts/{}", id(&account)),
        "/v1/accounts/a".to_owned(),
        format!("/v1/accounts/{}/balance", id(&account)),
        format!("/v1/accounts/{}/entries", id(&account)),
        format!("/v1/transfers/{}", id(&held)),
        format!("/v1/transfers/{}/timeline", id(&held)),
        format!("/v1/transactions/{}", id(&posted)),
    ];
    for target in &targets {
        assert_eq!(server.ask(Request::get(target)).await.status, 200, "{target}");
        let theirs = server.ask(Request::get(target).by("sk_globex")).await;
        let absent = server
            .ask(
                Request::get(
                    &target.replace(id(&account), "ac_zzzzzzzzzzzzzzzzzzzzzzzzzz").replace("/a", "/nobody"),
                )
                .by("sk_globex"),
            )
            .await;
        for reply in [theirs, absent] {
            reply.problem(404, "not_found");
        }
        server.ask(Request::get(&format!("{target}?x=1"))).await.problem(400, "invalid_request");
        server.ask(Request::get(target).by("sk_acme_write")).await.problem(403, "forbidden");
    }
    for target in [
        "/v1/accounts/nobody",
        "/v1/accounts/%zz",
        "/v1/accounts/%ff",
        "/v1/accounts/a%20b/balance",
        "/v1/accounts/-/entries",
        "/v1/transfers/x",
        "/v1/transfers/tr_zzzzzzzzzzzzzzzzzzzzzzzzzz",
        "/v1/transfers/%2e%2e/timeline",
        "/v1/transactions/x",
    ] {
        server.ask(Request::get(target)).await.problem(404, "not_found");
    }
    // A reference of another kind is not found.
    for target in [format!("/v1/transfers/{}", id(&posted)), format!("/v1/transactions/{}", id(&held))] {
        server.ask(Request::get(&target)).await.problem(404, "not_found");
    }
    for (target, body) in [
        ("/v1/accounts/nobody/shards".to_owned(), r#"{"shards":2}"#),
        ("/v1/accounts/%zz/shards".to_owned(), r#"{"shards":2}"#),
        ("/v1/transfers/x/post".to_owned(), "{}"),
        (format!("/v1/transfers/{}/void", id(&posted)), "{}"),
        ("/v1/transactions/x/reverse".to_owned(), "{}"),
    ] {
        server.ask(Request::post(&target, "k", body)).await.problem(404, "not_found");
    }
    for (target, body) in [
        ("/v1/accounts/a/shards".to_owned(), r#"{"shards":2}"#),
        (format!("/v1/transfers/{}/post", id(&held)), "{}"),
        (format!("/v1/transactions/{}/reverse", id(&posted)), "{}"),
    ] {
        server.ask(Request::post(&target, "k", body).by("sk_globex")).await.problem(404, "not_found");
    }
    let from_theirs = server.ask(Request::post("/v1/transfers", "k", TRANSFER).by("sk_globex")).await;
    let problem = from_theirs.problem(400, "invalid_request");
    assert_eq!(
        (&problem["errors"][0]["pointer"], &problem["errors"][1]["pointer"]),
        (&json!("/from"), &json!("/to"))
    );
}

#[tokio::test]
async fn refusals_are_stored_and_replayed() {
    let server = Server::start().await;
    let all = writes(&server).await;
    let again = |target: &str, code: &'static str| {
        let write = all.iter().find(|write| write.target.ends_with(target)).unwrap().clone();
        (write, code)
    };
    for (write, code) in [
        again("/v1/accounts", "account_exists"),
        again("/post", "hold_ended"),
        again("/void", "hold_ended"),
        again("/reverse", "already_reversed"),
        again("/v1/assets", "asset_exists"),
    ] {
        assert_eq!(server.ask(write.with("first")).await.status, write.status);
        let refused = server.ask(write.with(&format!("again-{}", write.target))).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert_eq!((&refused.json()["error"], &refused.json()["safe_new_key"]), (&json!(code), &json!(true)));
        assert_eq!(refused.header("location"), None);
        let replayed = server.ask(write.with(&format!("again-{}", write.target))).await;
        assert_eq!((replayed.header("idempotent-replayed"), &replayed.body), (Some("true"), &refused.body));
        // Every refusal has a separate key.
        server.fake.forget("first");
    }
    let reversal = make(&server, "/v1/transactions", "p", POST).await;
    let reversal = make(&server, &format!("/v1/transactions/{}/reverse", id(&reversal)), "r", "{}").await;
    let twice = Request::post(&format!("/v1/transactions/{}/reverse", id(&reversal)), "rr", "{}");
    assert_eq!(server.ask(twice).await.json()["error"], "not_reversible");
    let currency = server.ask(Request::post("/v1/assets", "usd", r#"{"code":"usd","exponent":2}"#)).await;
    assert_eq!(currency.json()["error"], "asset_exists");
}

#[tokio::test]
async fn accounts_are_found_by_id_and_by_code() {
    let server = Server::start().await;
    let body = r#"{"code":"shop/eu:7","asset":"usd","floor":-100,"cap":null,"shards":2,"normal_side":"debit","metadata":{"a":"b"}}"#;
    let opened = make(&server, "/v1/accounts", "k", body).await;
    let mut expected = json!({
        "id": id(&opened), "object": "account", "code": "shop/eu:7", "asset": "USD", "normal_side": "debit",
        "floor": -100, "cap": null, "shards": 2, "metadata": {"a": "b"}, "created_at": "2026-01-01T00:00:00.000Z",
    });
    assert_eq!(opened, expected);
    for name in [id(&opened), "shop%2Feu:7", "shop%2feu%3A7"] {
        assert_eq!(get(&server, &format!("/v1/accounts/{name}")).await, expected, "{name}");
        let balance = get(&server, &format!("/v1/accounts/{name}/balance")).await;
        assert_eq!((&balance["object"], &balance["account"]), (&json!("balance"), &expected["id"]));
        assert_eq!(get(&server, &format!("/v1/accounts/{name}/entries")).await["data"], json!([]));
    }
    let spread = make(&server, "/v1/accounts/shop%2Feu:7/shards", "s", r#"{"shards":256}"#).await;
    expected["shards"] = json!(256);
    assert_eq!(spread, expected);
    server.ask(Request::get("/v1/accounts/shop/eu:7")).await.problem(404, "not_found");
}

#[tokio::test]
async fn lists_are_paged_and_foreign_cursors_refused() {
    let server = Server::start().await;
    open_accounts(&server).await;
    let mut entries = Vec::new();
    for number in 0..5 {
        let made = make(&server, "/v1/transactions", &format!("p-{number}"), POST).await;
        entries.push((id(&made).to_owned(), made["entries"][0]["id"].as_str().unwrap().to_owned()));
    }
    entries.reverse();
    let accounts = get(&server, "/v1/accounts").await;
    let codes: Vec<&Value> = accounts["data"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["e", "b", "a"]);
    assert_eq!(accounts["has_more"], false);
    let newest: Vec<&str> = ids(&accounts);
    let rest = get(&server, &format!("/v1/accounts?limit=1&starting_after={}", newest[0])).await;
    assert_eq!((ids(&rest), &rest["has_more"]), (vec![newest[1]], &json!(true)));

    let transactions = get(&server, "/v1/transactions?limit=2").await;
    assert_eq!(ids(&transactions), [entries[0].0.as_str(), &entries[1].0]);
    assert_eq!(transactions["has_more"], true);
    let rest = get(&server, &format!("/v1/transactions?starting_after={}", entries[1].0)).await;
    assert_eq!((ids(&rest).len(), &rest["has_more"]), (3, &json!(false)));

    let list = get(&server, "/v1/accounts/a/entries?limit=3").await;
    assert_eq!(ids(&list), entries[..3].iter().map(|(_, entry)| entry.as_str()).collect::<Vec<_>>());
    let expected = json!({
        "id": entries[0].1, "object": "entry", "transaction": entries[0].0, "account": newest[2],
        "direction": "debit", "layer": "posted", "amount": 5, "asset": "USD", "position": 5,
        "created_at": "2026-01-01T00:00:00.000Z",
    });
    assert_eq!((&list["data"][0], &list["has_more"]), (&expected, &json!(true)));
    let rest = get(&server, &format!("/v1/accounts/a/entries?starting_after={}", entries[2].1)).await;
    assert_eq!((ids(&rest).len(), &rest["has_more"]), (2, &json!(false)));

    let others = entries[0].1.replace("_0", "_1");
    for target in [
        format!("/v1/accounts?starting_after={}", entries[0].0),
        "/v1/accounts?starting_after=a".to_owned(),
        format!("/v1/transactions?starting_after={}", newest[0]),
        "/v1/transactions?starting_after=tx_1".to_owned(),
        format!("/v1/accounts/a/entries?starting_after={others}"),
        format!("/v1/accounts/a/entries?starting_after={}_0", entries[0].1),
        format!("/v1/accounts/a/entries?starting_after={}", entries[0].1.replace("_0", "_7")),
        format!("/v1/accounts/a/entries?starting_after={}", entries[0].0),
        "/v1/accounts/a/entries?limit=0".to_owned(),
        "/v1/accounts/a/entries?at=1".to_owned(),
        "/v1/accounts?limit=101".to_owned(),
        "/v1/transactions?expand=1".to_owned(),
        "/v1/assets?limit=x".to_owned(),
        "/v1/assets?starting_after=POINTS".to_owned(),
    ] {
        server.ask(Request::get(&target)).await.problem(400, "invalid_request");
    }
    for list in ["accounts", "transactions"] {
        let place = if list == "accounts" { newest[0] } else { &entries[0].0 };
        let target = format!("/v1/{list}?starting_after={place}");
        server.ask(Request::get(&target).by("sk_globex")).await.problem(400, "invalid_request");
        let own = server.ask(Request::get(&format!("/v1/{list}")).by("sk_globex")).await;
        assert_eq!(own.text(), r#"{"object":"list","data":[],"has_more":false}"#);
    }
}

#[tokio::test]
async fn balances_are_read_at_present_and_in_the_past() {
    let server = Server::start().await;
    open_accounts(&server).await;
    make(&server, "/v1/transfers", "1", TRANSFER).await;
    server.fake.now_ms.fetch_add(60_000, Ordering::SeqCst);
    make(&server, "/v1/transfers", "2", HOLD).await;
    let of = async |query: &str| balance_of(&get(&server, &format!("/v1/accounts/b/balance{query}")).await);
    assert_eq!(of("").await, [100, 0, 100, 100, 2]);
    for at in [
        "?at=1",
        "?at=2026-01-01T00:00:00Z",
        "?at=2026-01-01T00:00:59.999Z",
        "?at=2026-01-01T01:00:30%2B01:00",
    ] {
        assert_eq!(of(at).await, [100, 0, 100, 0, 1], "{at}");
    }
    assert_eq!(of("?at=0").await, [0, 0, 0, 0, 0]);
    assert_eq!(of("?at=2026-01-01T00:01:00Z").await, [100, 0, 100, 100, 2]);
    let whole = get(&server, "/v1/accounts/a/balance").await;
    assert_eq!(balance_of(&whole), [-100, 100, -200, 0, 2]);
    for query in ["at=", "at=yesterday", "at=1.5", "at=-1", "at=2026-02-30T00:00:00Z", "limit=1", "at=1&at=2"]
    {
        let target = format!("/v1/accounts/a/balance?{query}");
        let problem = server.ask(Request::get(&target)).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "", "{query}");
    }
}

#[tokio::test]
async fn held_transfers_are_posted_voided_or_lapse() {
    let server = Server::start().await;
    open_accounts(&server).await;
    let done = make(&server, "/v1/transfers", "1", TRANSFER).await;
    assert_eq!(
        (&done["status"], &done["hold"], &done["expires_at"]),
        (&json!("posted"), &json!(false), &Value::Null)
    );
    let of_it = get(&server, &format!("/v1/transactions/{}", done["transaction"].as_str().unwrap())).await;
    assert_eq!((&of_it["kind"], &of_it["transfer"]), (&json!("transfer"), &done["id"]));

    let until = HOLD.replace("true", r#"true,"expires_at":"2026-01-01T02:00:00+01:00""#);
    let held = make(&server, "/v1/transfers", "2", &until).await;
    assert_eq!(
        (&held["status"], &held["hold"], &held["transaction"]),
        (&json!("pending"), &json!(true), &Value::Null)
    );
    assert_eq!(held["expires_at"], "2026-01-01T01:00:00.000Z");
    let target = format!("/v1/transfers/{}", id(&held));
    let too_much = server.ask(Request::post(&format!("{target}/post"), "k", r#"{"amount":101}"#)).await;
    assert_eq!(too_much.problem(400, "invalid_request")["errors"][0]["pointer"], "/amount");
    let posted = make(&server, &format!("{target}/post"), "k", r#"{"amount":60}"#).await;
    assert_eq!((&posted["status"], &posted["amount_posted"]), (&json!("posted"), &json!(60)));
    assert_eq!(get(&server, &target).await, posted);
    let timeline = get(&server, &format!("{target}/timeline")).await;
    assert_eq!((&timeline["object"], &timeline["data"][0]["kind"]), (&json!("list"), &json!("posted")));

    let left = make(&server, "/v1/transfers", "3", &until).await;
    server.fake.now_ms.fetch_add(3_600_000, Ordering::SeqCst);
    let target = format!("/v1/transfers/{}", id(&left));
    assert_eq!(get(&server, &target).await["status"], "lapsed", "even before the worker has ended the hold");
    let late = server.ask(Request::post(&format!("{target}/void"), "late", "")).await;
    assert_eq!((late.status, &late.json()["error"]), (409, &json!("hold_ended")));
}

#[tokio::test]
async fn reversed_transactions_name_their_reversal() {
    let server = Server::start().await;
    open_accounts(&server).await;
    let posted = make(&server, "/v1/transactions", "1", POST).await;
    let undone = make(&server, &format!("/v1/transactions/{}/reverse", id(&posted)), "2", "{}").await;
    assert_eq!((&undone["kind"], &undone["reverses"]), (&json!("reversal"), &posted["id"]));
    assert_eq!(undone["entries"][0]["direction"], "credit");
    let now = get(&server, &format!("/v1/transactions/{}", id(&posted))).await;
    assert_eq!((&now["reversed_by"], &posted["reversed_by"]), (&undone["id"], &Value::Null));
    let list = get(&server, "/v1/transactions").await;
    assert_eq!(
        (&list["data"][1]["reversed_by"], &list["data"][0]["reversed_by"]),
        (&undone["id"], &Value::Null)
    );

    let unbalanced = POST.replacen(":5", ":6", 1);
    let problem =
        server.ask(Request::post("/v1/transactions", "3", &unbalanced)).await.problem(400, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/entries");
    let twice = POST.replace("\"b\"", "\"a\"");
    let problem =
        server.ask(Request::post("/v1/transactions", "3", &twice)).await.problem(400, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/entries/1/account");
}

#[tokio::test]
async fn conversions_book_the_remainder_of_rounding() {
    let server = Server::start().await;
    open_accounts(&server).await;
    let body = r#"{"from":"a","to":"e","amount":1001,"rate":0.9215,"rounding":"down","metadata":{"q":"1"}}"#;
    let made = make(&server, "/v1/conversions", "1", body).await;
    assert_eq!((&made["kind"], &made["metadata"]), (&json!("conversion"), &json!({"q": "1"})));
    let amounts: Vec<(i64, &str)> = made["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["amount"].as_i64().unwrap(), entry["asset"].as_str().unwrap()))
        .collect();
    // 10.01 USD at 0.9215 are 9.224215 EUR.
    assert_eq!(amounts, [(1001, "USD"), (1001, "USD"), (923, "EUR"), (922, "EUR"), (1, "EUR")]);
    let same = server.ask(Request::post("/v1/conversions", "2", &body.replace("\"e\"", "\"b\""))).await;
    assert_eq!(same.problem(400, "invalid_request")["errors"][0]["pointer"], "/to");
}

#[tokio::test]
async fn assets_are_listed_by_code() {
    let server = Server::start().await;
    for (key, code) in ["points", "Carbon", "miles"].into_iter().enumerate() {
        make(&server, "/v1/assets", &format!("k-{key}"), &format!(r#"{{"code":"{code}","exponent":3}}"#))
            .await;
    }
    let list = get(&server, "/v1/assets").await;
    let codes = |list: &Value| -> Vec<String> {
        list["data"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (codes(&list), &list["has_more"]),
        (vec!["CARBON".to_owned(), "MILES".to_owned(), "POINTS".to_owned()], &json!(false))
    );
    let expected =
        json!({"object": "asset", "code": "CARBON", "exponent": 3, "created_at": "2026-01-01T00:00:00.000Z"});
    assert_eq!(list["data"][0], expected);
    let page = get(&server, "/v1/assets?limit=1&starting_after=CARBON").await;
    assert_eq!((codes(&page), &page["has_more"]), (vec!["MILES".to_owned()], &json!(true)));
    let theirs = server.ask(Request::get("/v1/assets").by("sk_globex")).await;
    assert_eq!(theirs.text(), r#"{"object":"list","data":[],"has_more":false}"#);
}

#[tokio::test]
async fn bulk_transactions_are_posted_independently() {
    let mut roomy = settings();
    roomy.body_limit_bytes = 1 << 20;
    let server = Server::with(roomy, Duration::ZERO).await;
    open_accounts(&server).await;
    let unknown = TRANSFER.replace("\"b\"", "\"nobody\"");
    let items: Vec<&str> = (0..1_000)
        .map(|number| match number % 3 {
            0 => TRANSFER,
            1 => POST,
            _ => unknown.as_str(),
        })
        .collect();
    let body = format!(r#"{{"transactions":[{}]}}"#, items.join(","));
    let made = make(&server, "/v1/transactions/bulk", "k", &body).await;
    assert!(id(&made).starts_with("bk_"));
    assert_eq!((&made["posted"], &made["refused"]), (&json!(667), &json!(333)));
    let results = made["results"].as_array().unwrap();
    assert_eq!(results.len(), 1_000);
    for (number, result) in results.iter().enumerate() {
        if number % 3 == 2 {
            assert_eq!(result["status"], "invalid");
            assert_eq!(result["errors"][0]["pointer"], format!("/transactions/{number}/to"));
        } else {
            assert_eq!(result["status"], "posted");
            assert!(result["transaction"].as_str().unwrap().starts_with("tx_"));
        }
    }
    let last =
        get(&server, &format!("/v1/transactions/{}", results[999]["transaction"].as_str().unwrap())).await;
    assert_eq!(last["kind"], "transfer");
    let one_bad = body.replacen(r#""amount":100"#, r#""amount":"100""#, 1);
    let problem = server
        .ask(Request::post("/v1/transactions/bulk", "k2", &one_bad))
        .await
        .problem(400, "invalid_request");
    assert_eq!(
        problem["errors"],
        json!([{
            "pointer": "/transactions/0/amount",
            "message": "`amount` must be a whole number of minor units, like 1250 for 12.50 USD, not a text",
        }])
    );
    let more = format!(r#"{{"transactions":[{}]}}"#, vec![TRANSFER; 1_001].join(","));
    server.ask(Request::post("/v1/transactions/bulk", "k3", &more)).await.problem(400, "invalid_request");
}

#[tokio::test]
async fn a_charge_may_credit_any_account() {
    let server = Server::start().await;
    open_accounts(&server).await;
    let account = get(&server, "/v1/accounts/b").await;
    let body =
        format!(r#"{{"amount":5,"currency":"usd","payment_method":"pm","destination":"{}"}}"#, id(&account));
    let charge = make(&server, "/v1/charges", "k", &body).await;
    assert_eq!(charge["destination"], account["id"]);
    let bad = body.replace(id(&account), "customer:42");
    let problem = server.ask(Request::charge("k2", &bad)).await.problem(400, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/destination");
}

#[tokio::test]
async fn reads_fail_while_the_store_is_down() {
    let server = Server::start().await;
    let all = writes(&server).await;
    let account = get(&server, "/v1/accounts/a").await;
    server.fake.store_down.store(true, Ordering::SeqCst);
    for target in [
        "/v1/accounts".to_owned(),
        "/v1/accounts/a".to_owned(),
        format!("/v1/accounts/{}/balance", id(&account)),
        "/v1/accounts/a/entries".to_owned(),
        "/v1/transactions".to_owned(),
        "/v1/assets".to_owned(),
    ] {
        server.ask(Request::get(&target)).await.problem(503, "store_unavailable");
    }
    for write in all {
        server.ask(write.with("k")).await.problem(503, "store_unavailable");
    }
}
