//! The table of writing routes and their fields. A new route needs one entry here.

/// Objects named in paths and fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Charge,
    Account,
    Transfer,
    Transaction,
    Refund,
    Payout,
}

/// The kinds of fields.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// 1 to 999,999,999,999,999.
    Amount,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// Any 64-bit integer.
    Bound,
    /// An ISO 4217 code.
    Currency,
    /// The code of any asset.
    Asset,
    /// An account, by id or code.
    Account,
    /// An account, by id or code, that may be absent: the answer reports it instead of a refusal.
    Name,
    /// An object of the tenant, by id only.
    Id(Object),
    /// A token of the provider.
    Token,
    /// A text with this many bytes at most.
    Text(usize),
    /// The code of a new account.
    Code,
    /// A word of a closed list.
    Word,
    Truth,
    Time,
    Rate,
    Metadata,
    /// Minimum and maximum number of objects, and their fields.
    List(usize, usize, &'static [Field]),
}

/// Whether a field is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
    /// Optional in the description, but required together with its neighbours.
    Needed,
    /// Optional in the description, but its absence changes the shape of the object.
    Shaping,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) presence: Presence,
}

const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, presence: Presence::Required }
}

const fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, presence: Presence::Optional }
}

const fn needed(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, presence: Presence::Needed }
}

/// A writing route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) path: &'static str,
    /// The object in the path, and the request that creates a fresh one.
    pub(crate) about: Option<(Object, &'static str, &'static str)>,
    pub(crate) fields: &'static [Field],
    /// Whether the request may have no body.
    pub(crate) may_be_empty: bool,
    /// An accepted body with every field. `%N` becomes a number unique to the request, `%A` the
    /// account's id, `%C` the charge's.
    pub(crate) good: &'static str,
    pub(crate) status: u16,
    /// Well-formed bodies without a meaning, and the pointers that the answer must name.
    pub(crate) senseless: &'static [(&'static str, &'static [&'static str])],
}

impl Write {
    /// The key shared by all bad requests of a group, so that it can be checked afterwards.
    pub(crate) fn key(&self, group: &str) -> String {
        let route = WRITES.iter().position(|known| known.path == self.path).unwrap();
        format!("hostile-{route}-{group}")
    }
}

const ENTRY: [Field; 4] = [
    required("account", Kind::Account),
    required("direction", Kind::Word),
    required("amount", Kind::Amount),
    required("asset", Kind::Asset),
];
const BULK_ENTRY: [Field; 4] = [
    required("account", Kind::Name),
    required("direction", Kind::Word),
    required("amount", Kind::Amount),
    required("asset", Kind::Asset),
];
const METADATA: Field = optional("metadata", Kind::Metadata);
const HOLD: &str = r#"{"from":"a","to":"b","amount":100,"currency":"usd","hold":true}"#;
const POST: &str = r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}]}"#;
const HELD_CHARGE: &str =
    r#"{"amount":100,"currency":"usd","payment_method":"pm_card_visa","capture":false}"#;
const A_HELD_CHARGE: Option<(Object, &str, &str)> = Some((Object::Charge, "/v1/charges", HELD_CHARGE));
const A_HOLD: Option<(Object, &str, &str)> = Some((Object::Transfer, "/v1/transfers", HOLD));

pub(crate) const WRITES: &[Write] = &[
    Write {
        path: "/v1/charges",
        about: None,
        fields: &[
            required("amount", Kind::Amount),
            required("currency", Kind::Currency),
            required("payment_method", Kind::Token),
            optional("capture", Kind::Truth),
            optional("destination", Kind::Id(Object::Account)),
            optional("description", Kind::Text(1_000)),
            METADATA,
        ],
        may_be_empty: false,
        good: r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa","capture":true,"destination":"%A","description":"two of them","metadata":{"order":"42"}}"#,
        status: 201,
        senseless: &[
            (
                r#"{"amount":1,"currency":"usd","payment_method":"pm","wallet":{"account":"a","amount":1}}"#,
                &["/wallet/account", "/wallet/amount"],
            ),
            (r#"{"amount":1,"currency":"eur","payment_method":"pm","destination":"%A"}"#, &["/destination"]),
        ],
    },
    Write {
        path: "/v1/charges/{id}/capture",
        about: A_HELD_CHARGE,
        fields: &[optional("amount", Kind::Amount)],
        may_be_empty: true,
        good: r#"{"amount":60}"#,
        status: 200,
        senseless: &[],
    },
    Write {
        path: "/v1/charges/{id}/void",
        about: A_HELD_CHARGE,
        fields: &[],
        may_be_empty: true,
        good: "{}",
        status: 200,
        senseless: &[],
    },
    Write {
        path: "/v1/refunds",
        about: None,
        fields: &[required("charge", Kind::Id(Object::Charge)), optional("amount", Kind::Amount)],
        may_be_empty: false,
        good: r#"{"charge":"%C","amount":1}"#,
        status: 201,
        senseless: &[],
    },
    Write {
        path: "/v1/payouts",
        about: None,
        fields: &[
            required("amount", Kind::Amount),
            required("currency", Kind::Currency),
            optional("account", Kind::Id(Object::Account)),
            // No peer is configured, so no good body has one.
            optional("peer", Kind::Word),
            optional("destination", Kind::Token),
            optional("description", Kind::Text(1_000)),
            METADATA,
        ],
        may_be_empty: false,
        good: r#"{"amount":1,"currency":"usd","account":"%A","destination":"ba_1","description":"weekly","metadata":{"order":"42"}}"#,
        status: 201,
        senseless: &[
            (r#"{"amount":1,"currency":"eur","account":"%A"}"#, &["/account"]),
            (r#"{"amount":1,"currency":"usd","peer":"nobody","destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":"stripe","destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":"","destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":"EU","destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":"e=u","destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":"eu\u0000","destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":["eu"],"destination":"a"}"#, &["/peer"]),
            (r#"{"amount":1,"currency":"usd","peer":"nobody"}"#, &["/destination"]),
        ],
    },
    Write {
        path: "/v1/accounts",
        about: None,
        fields: &[
            required("code", Kind::Code),
            required("asset", Kind::Asset),
            optional("floor", Kind::Bound),
            optional("cap", Kind::Bound),
            optional("shards", Kind::Whole(1, 256)),
            optional("normal_side", Kind::Word),
            METADATA,
        ],
        may_be_empty: false,
        good: r#"{"code":"new:%N","asset":"usd","floor":-5,"cap":500,"shards":2,"normal_side":"credit","metadata":{"order":"42"}}"#,
        status: 201,
        senseless: &[
            (r#"{"code":"c","asset":"nowhere"}"#, &["/asset"]),
            (r#"{"code":"c","asset":"usd","floor":5,"cap":4}"#, &["/cap"]),
            (r#"{"code":"chart:fees","asset":"usd"}"#, &["/code"]),
            (r#"{"code":"%A","asset":"usd"}"#, &["/code"]),
            (r#"{"code":"ac_00000000000000000000000000","asset":"usd"}"#, &["/code"]),
            (r#"{"code":"c","asset":"usd","floor":1,"shards":2}"#, &["/shards"]),
        ],
    },
    Write {
        path: "/v1/accounts/{id}/shards",
        about: Some((Object::Account, "/v1/accounts", r#"{"code":"spread:%N","asset":"usd","floor":0}"#)),
        fields: &[required("shards", Kind::Whole(1, 256))],
        may_be_empty: false,
        good: r#"{"shards":4}"#,
        status: 200,
        senseless: &[],
    },
    Write {
        path: "/v1/transfers",
        about: None,
        fields: &[
            required("from", Kind::Account),
            required("to", Kind::Account),
            required("amount", Kind::Amount),
            required("currency", Kind::Asset),
            optional("hold", Kind::Truth),
            optional("expires_at", Kind::Time),
            METADATA,
        ],
        may_be_empty: false,
        good: r#"{"from":"a","to":"b","amount":100,"currency":"usd","hold":true,"expires_at":"2999-01-31T12:00:00Z","metadata":{"order":"42"}}"#,
        status: 201,
        senseless: &[
            (r#"{"from":"a","to":"a","amount":1,"currency":"usd"}"#, &["/to"]),
            (r#"{"from":"a","to":"%A","amount":1,"currency":"usd"}"#, &["/to"]),
            (r#"{"from":"nobody","to":"nowhere","amount":1,"currency":"usd"}"#, &["/from", "/to"]),
            (r#"{"from":"a","to":"b","amount":1,"currency":"eur"}"#, &["/currency"]),
            (r#"{"from":"a","to":"e","amount":1,"currency":"usd"}"#, &["/currency"]),
            (r#"{"from":"a","to":"b","amount":1,"currency":"nowhere"}"#, &["/currency"]),
            (
                r#"{"from":"a","to":"b","amount":1,"currency":"usd","expires_at":"2999-01-31T12:00:00Z"}"#,
                &["/expires_at"],
            ),
            (
                r#"{"from":"a","to":"b","amount":1,"currency":"usd","hold":true,"expires_at":"2000-01-01T00:00:00Z"}"#,
                &["/expires_at"],
            ),
        ],
    },
    Write {
        path: "/v1/transfers/{id}/post",
        about: A_HOLD,
        fields: &[optional("amount", Kind::Amount)],
        may_be_empty: true,
        good: r#"{"amount":60}"#,
        status: 200,
        senseless: &[(r#"{"amount":101}"#, &["/amount"])],
    },
    Write {
        path: "/v1/transfers/{id}/void",
        about: A_HOLD,
        fields: &[],
        may_be_empty: true,
        good: "{}",
        status: 200,
        senseless: &[],
    },
    Write {
        path: "/v1/transactions",
        about: None,
        fields: &[required("entries", Kind::List(2, 40, &ENTRY)), METADATA],
        may_be_empty: false,
        good: r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}],"metadata":{"order":"42"}}"#,
        status: 201,
        senseless: &[
            (
                r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":6,"asset":"usd"}]}"#,
                &["/entries"],
            ),
            (
                r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"debit","amount":5,"asset":"usd"}]}"#,
                &["/entries"],
            ),
            (
                r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"a","direction":"credit","amount":5,"asset":"usd"}]}"#,
                &["/entries/1/account"],
            ),
            (
                r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"eur"},{"account":"nobody","direction":"credit","amount":5,"asset":"eur"}]}"#,
                &["/entries/0/asset", "/entries/1/account"],
            ),
        ],
    },
    Write {
        path: "/v1/transactions/bulk",
        about: None,
        fields: &[required(
            "transactions",
            Kind::List(
                1,
                1_000,
                &[
                    Field {
                        name: "entries",
                        kind: Kind::List(2, 40, &BULK_ENTRY),
                        presence: Presence::Shaping,
                    },
                    needed("from", Kind::Name),
                    needed("to", Kind::Name),
                    needed("amount", Kind::Amount),
                    needed("currency", Kind::Asset),
                    METADATA,
                ],
            ),
        )],
        may_be_empty: false,
        good: r#"{"transactions":[{"from":"a","to":"b","amount":5,"currency":"usd","metadata":{"order":"42"}},{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}],"metadata":{"order":"43"}}]}"#,
        status: 200,
        senseless: &[(
            r#"{"transactions":[{"from":"a","entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}]}]}"#,
            &["/transactions/0/from"],
        )],
    },
    Write {
        path: "/v1/transactions/{id}/reverse",
        about: Some((Object::Transaction, "/v1/transactions", POST)),
        fields: &[],
        may_be_empty: true,
        good: "{}",
        status: 201,
        senseless: &[],
    },
    Write {
        path: "/v1/conversions",
        about: None,
        fields: &[
            required("from", Kind::Account),
            required("to", Kind::Account),
            required("amount", Kind::Amount),
            required("rate", Kind::Rate),
            optional("rounding", Kind::Word),
            METADATA,
        ],
        may_be_empty: false,
        good: r#"{"from":"a","to":"e","amount":1000,"rate":0.9215,"rounding":"half_even","metadata":{"order":"42"}}"#,
        status: 201,
        senseless: &[
            (r#"{"from":"a","to":"b","amount":1,"rate":1}"#, &["/to"]),
            (r#"{"from":"a","to":"nobody","amount":1,"rate":1}"#, &["/to"]),
            (r#"{"from":"a","to":"e","amount":1,"rate":0.0000001}"#, &["/amount"]),
            (r#"{"from":"a","to":"e","amount":999999999999999,"rate":1000000}"#, &["/amount"]),
        ],
    },
    Write {
        path: "/v1/assets",
        about: None,
        fields: &[required("code", Kind::Asset), required("exponent", Kind::Whole(0, 9))],
        may_be_empty: false,
        good: r#"{"code":"POINTS_%N","exponent":2}"#,
        status: 201,
        senseless: &[],
    },
];
