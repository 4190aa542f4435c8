//! The statements of the usual implementation.

use tokio_postgres::types::ToSql;

/// The content of a charge request.
#[derive(Clone, Copy)]
pub(in super::super) struct Order<'a> {
    pub(in super::super) amount: i64,
    pub(in super::super) currency: &'a str,
    pub(in super::super) payment_method: &'a str,
    pub(in super::super) description: Option<&'a str>,
    pub(in super::super) metadata: &'a str,
}

/// The values of a charge's rows.
pub(in super::super) struct Work<'a> {
    pub(in super::super) number: i64,
    pub(in super::super) tenant: i64,
    pub(in super::super) key: &'a str,
    pub(in super::super) request: &'a [u8],
    pub(in super::super) order: Order<'a>,
    /// The provider's name for the payment.
    pub(in super::super) reference: &'a str,
    pub(in super::super) answer: &'a [u8],
}

/// A row, written by one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Row {
    Claim,
    Charge,
    Work,
    Audit,
    Answer,
    Succeeded,
    WorkDone,
    Transaction,
    Entries,
}

/// The rows written in a transaction before the provider is called.
pub(in super::super) const OPENING: &[Row] = &[Row::Claim, Row::Charge, Row::Work, Row::Audit];
/// The rows written in a transaction after the provider's answer. The audit log gets both the
/// attempt and the answer.
pub(in super::super) const SETTLING: &[Row] =
    &[Row::Answer, Row::Succeeded, Row::WorkDone, Row::Audit, Row::Audit, Row::Transaction, Row::Entries];

impl Row {
    pub(super) const ALL: [Row; 9] = [
        Row::Claim,
        Row::Charge,
        Row::Work,
        Row::Audit,
        Row::Answer,
        Row::Succeeded,
        Row::WorkDone,
        Row::Transaction,
        Row::Entries,
    ];

    pub(super) const fn sql(self) -> &'static str {
        match self {
            Row::Claim => {
                "INSERT INTO idempotency_keys (tenant, key, fingerprint, charge, state, fence, lease_until) \
                 VALUES ($1, $2, sha256($3), $4, 'in_flight', 1, now() + interval '30 seconds') \
                 ON CONFLICT (tenant, key) DO NOTHING"
            }
            Row::Charge => {
                "INSERT INTO charges (id, tenant, amount, currency, payment_method, destination, description, metadata, \
                 status, provider) VALUES ($1, $2, $3, $4, $5, 9, $6, $7::text::jsonb, 'processing', 'stripe')"
            }
            Row::Work => {
                "INSERT INTO outbox (charge, endpoint, due_at) \
                 VALUES ($1, 'http://127.0.0.1:8090', now() + interval '30 seconds')"
            }
            Row::Audit => {
                "INSERT INTO audit_log (charge, tenant, kind, detail) VALUES ($1, $2, 'claimed', 'step=0')"
            }
            Row::Answer => {
                "UPDATE idempotency_keys SET state = 'completed', status = 201, body = $3 \
                 WHERE tenant = $1 AND key = $2 AND state = 'in_flight' AND fence = 1"
            }
            Row::Succeeded => {
                "UPDATE charges SET status = 'succeeded', captured = amount, provider_reference = $2 \
                 WHERE id = $1 AND status = 'processing'"
            }
            Row::WorkDone => "DELETE FROM outbox WHERE charge = $1",
            Row::Transaction => "INSERT INTO transactions (id, tenant, kind) VALUES ($1, $2, 'charge')",
            Row::Entries => {
                "INSERT INTO entries (transaction, leg, account, side, amount, currency) \
                 VALUES ($1, 0, 8, 'debit', $2, $3), ($1, 1, 9, 'credit', $2, $3)"
            }
        }
    }

    pub(super) fn parameters<'w>(self, work: &'w Work<'_>) -> Vec<&'w (dyn ToSql + Sync)> {
        let order = &work.order;
        match self {
            Row::Claim => vec![&work.tenant, &work.key, &work.request, &work.number],
            Row::Charge => vec![
                &work.number,
                &work.tenant,
                &order.amount,
                &order.currency,
                &order.payment_method,
                &order.description,
                &order.metadata,
            ],
            Row::Answer => vec![&work.tenant, &work.key, &work.answer],
            Row::Succeeded => vec![&work.number, &work.reference],
            Row::Audit | Row::Transaction => vec![&work.number, &work.tenant],
            Row::Work | Row::WorkDone => vec![&work.number],
            Row::Entries => vec![&work.number, &order.amount, &order.currency],
        }
    }
}
