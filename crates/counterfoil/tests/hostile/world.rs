//! A server with two tenants and their objects.

use crate::bad::Request;
use crate::support::{Bench, Server, field, run, text};
use crate::table::Object;
use serde_json::Value;
use std::collections::BTreeMap;

/// The id of one object of each kind that a tenant owns.
pub(crate) type Owned = BTreeMap<Object, String>;

pub(crate) struct World {
    pub(crate) bench: Bench,
    pub(crate) server: Server,
    /// The API key of the tenant under test.
    pub(crate) secret: String,
    /// Its keys with a single scope each: read, write or admin.
    pub(crate) narrow: BTreeMap<&'static str, String>,
    /// The API key of another tenant.
    pub(crate) other: String,
    pub(crate) own: Owned,
    pub(crate) others: Owned,
}

impl World {
    pub(crate) fn start() -> World {
        let bench =
            Bench::new(&[("COUNTERFOIL_SERVER__REQUEST_LOG", "off"), ("COUNTERFOIL_LOG__LEVEL", "warn")]);
        let told = |arguments: &[&str]| {
            let made = run(&[arguments, &["--json", "--store", bench.url()]].concat());
            assert!(made.status.success(), "{}", text(&made.stderr));
            field(&text(&made.stdout), "secret")
        };
        let other = told(&["tenant", "create", "beta"]);
        let narrow = ["read", "write", "admin"]
            .map(|scope| (scope, told(&["tenant", "key", "create", "acme", "--scopes", scope])));
        // The key has all scopes, so a refusal is always about the request.
        let secret = told(&["tenant", "key", "create", "acme", "--scopes", "read,write,admin"]);
        let server = bench.serve();
        let (own, others) = (furnish(server.port, &secret), furnish(server.port, &other));
        World { bench, server, secret, narrow: BTreeMap::from(narrow), other, own, others }
    }

    pub(crate) fn id(&self, object: Object) -> &str {
        &self.own[&object]
    }

    /// A body with its placeholders replaced.
    pub(crate) fn filled(&self, body: &str) -> String {
        filled(body, &self.own, "0")
    }

    /// Ids that do not belong to the tenant: of other kinds, damaged, or of another tenant.
    pub(crate) fn not_ids(&self, object: Object) -> Vec<String> {
        let own = self.id(object);
        let mut ids = damaged(own);
        ids.extend(self.own.iter().filter(|(kind, _)| **kind != object).map(|(_, id)| id.clone()));
        ids.push(self.others[&object].clone());
        ids.extend(["", " ", "x", "a", "null", "../a", "\u{0}", "é", "1", "%00"].map(str::to_owned));
        ids
    }

    /// Texts that name no account of the tenant: damaged ids, another tenant's account, a charge.
    pub(crate) fn not_accounts(&self) -> Vec<String> {
        let mut names = damaged(self.id(Object::Account));
        names.push(self.others[&Object::Account].clone());
        names.push(self.id(Object::Charge).to_owned());
        names
    }

    /// The objects of a tenant as the server shows them, and the provider's effects.
    pub(crate) fn state(&self, secret: &str, own: &Owned) -> Vec<Value> {
        let lists = ["charges", "accounts", "transactions", "assets", "refunds", "payouts"]
            .map(|list| format!("/v1/{list}?limit=100"));
        let accounts = ["a", "b", "e"].map(|code| format!("/v1/accounts/{code}"));
        let mut paths = lists.to_vec();
        paths.extend(
            accounts.iter().flat_map(|path| [format!("{path}/balance"), format!("{path}/entries?limit=100")]),
        );
        paths.push(format!("/v1/transfers/{}", own[&Object::Transfer]));
        let get = |path: &String| ask(self.server.port, &Request::new("GET", path).by(secret));
        let mut state: Vec<Value> = paths.iter().map(get).collect();
        state.push(format!("{:?}", self.bench.provider.effects()).into());
        state
    }

    /// The state of both tenants.
    pub(crate) fn states(&self) -> [Vec<Value>; 2] {
        [self.state(&self.secret, &self.own), self.state(&self.other, &self.others)]
    }

    /// The server's peak memory in KiB.
    pub(crate) fn memory_peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().split(' ').next().unwrap().parse().unwrap()
    }
}

pub(crate) fn filled(body: &str, own: &Owned, number: &str) -> String {
    let account = own.get(&Object::Account).map_or("", String::as_str);
    let charge = own.get(&Object::Charge).map_or("", String::as_str);
    body.replace("%A", account).replace("%C", charge).replace("%N", number)
}

/// Malformed ids, and ids with a single changed character.
pub(crate) fn damaged(id: &str) -> Vec<String> {
    let (prefix, digits) = id.split_at(3);
    let mut ids: Vec<String> = (0..digits.len())
        .map(|at| {
            let other = if &digits[at..=at] == "0" { "1" } else { "0" };
            format!("{prefix}{}{other}{}", &digits[..at], &digits[at + 1..])
        })
        .collect();
    ids.extend([
        digits.to_owned(),
        prefix.to_owned(),
        format!("{prefix}{}", &digits[1..]),
        format!("{prefix}0{digits}"),
        format!("{prefix}{digits}0"),
        format!("{prefix}{}", digits.to_uppercase()),
        format!("{prefix}{}", "0".repeat(26)),
        format!("{prefix}{}", "z".repeat(26)),
    ]);
    ids.retain(|other| other != id);
    ids
}

/// Sends a request that must succeed.
pub(crate) fn ask(port: u16, request: &Request) -> Value {
    let answer = request.send(port).unwrap();
    let shown = || format!("{}\n{}", text(&request.bytes()), text(&answer.body));
    assert!([200, 201].contains(&answer.status), "{}: {}", answer.status, shown());
    answer.json()
}

/// Opens the accounts of the table, and makes one object of each kind.
fn furnish(port: u16, secret: &str) -> Owned {
    let make = |path: &str, key: &str, body: &str| {
        let made = ask(port, &Request::new("POST", path).by(secret).json(key, body));
        made["id"].as_str().unwrap().to_owned()
    };
    let mut own = Owned::new();
    for (code, asset) in [("a", "usd"), ("b", "usd"), ("e", "eur")] {
        let id = make(
            "/v1/accounts",
            &format!("open-{code}"),
            &format!(r#"{{"code":"{code}","asset":"{asset}"}}"#),
        );
        own.entry(Object::Account).or_insert(id);
    }
    let hold = r#"{"from":"a","to":"b","amount":100,"currency":"usd","hold":true}"#;
    own.insert(Object::Transfer, make("/v1/transfers", "hold", hold));
    let post = r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}]}"#;
    own.insert(Object::Transaction, make("/v1/transactions", "post", post));
    let charge = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;
    own.insert(Object::Charge, make("/v1/charges", "charge", charge));
    let refund = format!(r#"{{"charge":"{}","amount":1}}"#, own[&Object::Charge]);
    own.insert(Object::Refund, make("/v1/refunds", "refund", &refund));
    let payout = r#"{"amount":100,"currency":"usd","destination":"ba_1"}"#;
    own.insert(Object::Payout, make("/v1/payouts", "payout", payout));
    // Fund the account that is paid out of.
    make("/v1/transfers", "fund", r#"{"from":"b","to":"a","amount":100000,"currency":"usd"}"#);
    own
}
