//! The statements of the usual implementation.

use tokio_postgres::types::ToSql;

/// What a charge's rows are written from.
pub(in super::super) struct Work<'a> {
    pub(in super::super) number: i64,
    pub(in super::super) key: &'a str,
    pub(in super::super) request: &'a [u8],
    pub(in super::super) answer: &'a [u8],
}

/// A row that is written, by one statement each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Row {
    Claim,
    /// The charge, before its outcome is known.
    Opened,
    Work,
    Audit,
    Answer,
    Succeeded,
    WorkDone,
    /// The charge, once its outcome is known.
    Charge,
    Transaction,
    Entries,
}

impl Row {
    pub(super) const ALL: [Row; 10] = [
        Row::Claim,
        Row::Opened,
        Row::Work,
        Row::Audit,
        Row::Answer,
        Row::Succeeded,
        Row::WorkDone,
        Row::Charge,
        Row::Transaction,
        Row::Entries,
    ];

    pub(super) const fn sql(self) -> &'static str {
        match self {
            Row::Claim => {
                "INSERT INTO idempotency_keys (tenant, key, fingerprint, charge, state) \
                 VALUES (1, $1, sha256($2), $3, 'in_flight') ON CONFLICT (tenant, key) DO NOTHING"
            }
            Row::Opened => {
                "INSERT INTO charges (id, tenant, amount, currency, payment_method, status) \
                 VALUES ($1, 1, 1250, 'USD', 'pm_card_visa', 'processing')"
            }
            Row::Work => {
                "INSERT INTO outbox (charge, endpoint, due_at) \
                 VALUES ($1, 'http://127.0.0.1:8090', now() + interval '30 seconds')"
            }
            Row::Audit => "INSERT INTO audit_log (charge, kind, detail) VALUES ($1, 'claimed', 'step=0')",
            Row::Answer => {
                "UPDATE idempotency_keys SET state = 'completed', status = 201, body = $2 \
                 WHERE tenant = 1 AND key = $1 AND state = 'in_flight'"
            }
            Row::Succeeded => {
                "UPDATE charges SET status = 'succeeded' WHERE id = $1 AND status = 'processing'"
            }
            Row::WorkDone => "DELETE FROM outbox WHERE charge = $1",
            Row::Charge => {
                "INSERT INTO charges (id, tenant, amount, currency, payment_method, status) \
                 VALUES ($1, 1, 1250, 'USD', 'pm_card_visa', 'succeeded')"
            }
            Row::Transaction => "INSERT INTO transactions (id, tenant, kind) VALUES ($1, 1, 'charge')",
            Row::Entries => {
                "INSERT INTO entries (transaction, leg, account, side, amount, currency) \
                 VALUES ($1, 0, 8, 'debit', 1250, 'USD'), ($1, 1, 9, 'credit', 1250, 'USD')"
            }
        }
    }

    pub(super) fn parameters<'w>(self, work: &'w Work<'_>) -> Vec<&'w (dyn ToSql + Sync)> {
        match self {
            Row::Claim => vec![&work.key, &work.request, &work.number],
            Row::Answer => vec![&work.key, &work.answer],
            Row::Opened
            | Row::Work
            | Row::Audit
            | Row::Succeeded
            | Row::WorkDone
            | Row::Charge
            | Row::Transaction
            | Row::Entries => vec![&work.number],
        }
    }
}
