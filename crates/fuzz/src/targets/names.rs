//! The small languages: names, codes, scopes, and every stored word. Text that parses is written as
//! it was.

use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::audit;
use counterfoil_core::idempotency::claim::Resource;
use counterfoil_core::ledger::account::{AccountCode, Side};
use counterfoil_core::ledger::convert::Rounding;
use counterfoil_core::ledger::snapshot::FeedReader;
use counterfoil_core::ledger::transaction::{self, Layer};
use counterfoil_core::outbox::ParkReason;
use counterfoil_core::payments::charge::{ChargeStatus, FailureCode};
use counterfoil_core::tenancy::{KeyPolicy, Scopes, TenantName};
use counterfoil_core::types::asset::Asset;

pub(super) const TARGET: Target = Target {
    name: "names",
    seeds,
    words: &[
        "acme",
        "-",
        "_",
        ".",
        ":",
        "/",
        ",",
        " ",
        "A",
        "\u{e9}",
        "usd",
        "EUR",
        "POINTS_0",
        "chart:fees:EUR",
        "read",
        "write",
        "admin",
        "charge",
        "held",
        "hold_posted",
        "reversal",
        "debit",
        "posted",
        "processing",
        "card_declined",
        "half_even",
    ],
    length_max: 80,
    short: 60_000,
    start,
};

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "acme-1_x",
        "chart:payable:USD",
        "a.b/c",
        "CO2_GRAMS",
        "read,write",
        "admin",
        "transfer",
        "usd",
        "",
    ]);
    seeds.extend([16, 17, 64, 65].map(|length| vec![b'x'; length]));
    seeds
}

fn start() -> Check {
    Box::new(|input| {
        let text = &*String::from_utf8_lossy(input);
        let tenant = TenantName::parse(text).ok();
        assert!(tenant.as_ref().is_none_or(|name| name.as_str() == text));
        let code = AccountCode::parse(text).ok();
        assert!(code.as_ref().is_none_or(|code| code.as_str() == text));
        assert!(
            tenant.is_none_or(|_| text.starts_with(['-', '_']) || code.is_some()),
            "a name is a plain code"
        );
        let asset = Asset::parse(text).ok();
        assert!(asset.is_none_or(|asset| asset.code() == text.to_ascii_uppercase()));
        assert_eq!(
            Asset::currency(text).is_ok(),
            asset.is_some_and(|asset| asset.currency_exponent().is_some())
        );
        let scopes = Scopes::parse(text);
        assert!(scopes.is_none_or(|scopes| Scopes::parse(&scopes.names()) == Some(scopes)));
        let words = words(text);
        assert!(words.iter().flatten().all(|name| *name == text), "{text}: {words:?}");
        Kind::of(format!(
            "{} {} {} {} {words:?}",
            tenant_like(text),
            code.is_some(),
            asset.is_some(),
            scopes.is_some()
        ))
    })
}

fn tenant_like(text: &str) -> bool {
    TenantName::parse(text).is_ok()
}

/// The parsed word of each list of words.
fn words(text: &str) -> [Option<&'static str>; 12] {
    [
        audit::AuditKind::parse(text).map(audit::AuditKind::name),
        KeyPolicy::parse(text).map(KeyPolicy::name),
        ParkReason::parse(text).map(ParkReason::name),
        Side::parse(text).map(Side::name),
        Layer::parse(text).map(Layer::name),
        FeedReader::parse(text).map(FeedReader::name),
        Rounding::parse(text).map(Rounding::name),
        ChargeStatus::parse(text).map(ChargeStatus::name),
        FailureCode::parse(text).map(FailureCode::name),
        Resource::parse(text).map(Resource::name),
        transaction::TransactionKind::parse(text, None).map(transaction::TransactionKind::name),
        transaction::TransactionKind::parse(text, Some(7)).map(transaction::TransactionKind::name),
    ]
}
