//! Every bound of the system, with its reason. A loop, queue, list or field without a bound here is
//! a defect.

/// Bytes of an `Idempotency-Key`: Stripe's limit, and far below the size of an index page.
pub const KEY_BYTES_MAX: usize = 255;
/// Changes in one set: the weakest backend (DynamoDB) takes 100 actions, one of which records the
/// set's id.
pub const CHANGES_PER_SET_MAX: usize = 99;
/// Sets in one durable write. Larger groups gain no throughput and only delay their first set.
pub const SETS_PER_GROUP_MAX: usize = 512;
/// Sets waiting for the committer. A full queue means that the store is behind, and new work is
/// refused as throttled.
pub const COMMIT_QUEUE_MAX: usize = 4_096;
/// Rows on one page of a list, as in Stripe's API. The bound keeps an answer small.
pub const PAGE_MAX: usize = 100;
/// Rows on a page without a `limit`: about one screen.
pub const PAGE_DEFAULT: usize = 20;
/// Rows of one internal scan (`due`, `feed`, verification). The bound limits the memory and the
/// duration of a read.
pub const SCAN_MAX: usize = 1_000;
/// Metadata pairs of one object, as in Stripe's API.
pub const METADATA_PAIRS_MAX: usize = 50;
/// Bytes of a metadata name, as in Stripe's API.
pub const METADATA_NAME_BYTES_MAX: usize = 40;
/// Bytes of a metadata value, as in Stripe's API.
pub const METADATA_VALUE_BYTES_MAX: usize = 500;
/// Bytes of a description: a paragraph. Longer texts belong into the client's own system.
pub const DESCRIPTION_BYTES_MAX: usize = 1_000;
/// Bytes of a payment method token: Stripe promises ids of at most 255 characters.
pub const PAYMENT_METHOD_BYTES_MAX: usize = 255;
/// Bytes of a provider's reference, by the same promise. An answer with a longer one counts as
/// unreadable.
pub const PROVIDER_REFERENCE_BYTES_MAX: usize = 255;
/// Largest amount, in minor units. 15 digits survive every JSON reader, including readers that use
/// doubles.
pub const AMOUNT_MAX: i64 = 999_999_999_999_999;
/// Peers of one server. Each needs connections, a circuit breaker, and an account per tenant and
/// asset.
pub const PEERS_MAX: usize = 100;
/// Bytes of a peer's name. Prefix, peer name and asset code must fit an account's code.
pub const PEER_NAME_BYTES_MAX: usize = 32;
/// Bytes of a tenant's name, which is part of commands and metric labels.
pub const TENANT_NAME_BYTES_MAX: usize = 64;
/// Worker slots: an id has 14 bits for them.
pub const WORKER_SLOTS: u16 = 16_384;
/// Share of used slots that raises an alarm while there is still time to free some.
pub const WORKER_SLOTS_ALARM_PERCENT: u16 = 80;
/// Ids of one worker per millisecond: an id has 8 bits for them.
pub const IDS_PER_MS: u16 = 256;
/// How far ids may run ahead of the store's clock in a burst. The bound keeps an id's time close to
/// its creation.
pub const ID_RUN_AHEAD_MS: i64 = 1_000;
/// Requests waiting for the same key. The bound limits the memory of a storm; further requests are
/// told at once that the key is in use.
pub const WAITERS_PER_KEY_MAX: usize = 10_000;
/// Legs of one transaction. Legs, entries and balances together fit the weakest backend's 100
/// actions.
pub const LEGS_MAX: usize = 40;
/// Bytes of an asset's code, which is stored inline in every leg.
pub const ASSET_CODE_BYTES_MAX: usize = 16;
/// Decimals of a tenant's own asset: one unit must still fit an amount.
pub const ASSET_EXPONENT_MAX: u8 = 9;
/// Bytes of an account's code. The longest code of the chart has 60.
pub const ACCOUNT_CODE_BYTES_MAX: usize = 64;
/// Shards of one account: a shard's number is one byte.
pub const SHARDS_MAX: u16 = 256;
/// Transactions in one bulk request: such a body still fits the bounds of the JSON parser.
pub const BULK_MAX: usize = 1_000;
/// Entries of an account between two snapshots. Reading a balance sums at most this many entries,
/// plus those the projection has not reached.
pub const SNAPSHOT_EVERY: u64 = 256;
/// Snapshots of one account. Older ones are thinned out, so the rest still covers the whole
/// history.
pub const SNAPSHOTS_MAX: usize = 64;
/// Bytes of a provider's signature header. Several signatures fit during a change of secrets.
pub const SIGNATURE_BYTES_MAX: usize = 1_024;
/// Parts of a provider's signature header: a time, and a signature per secret and scheme in use.
pub const SIGNATURE_PARTS_MAX: usize = 16;
/// Secrets that one provider may sign with: the old, the new, and two to spare. Verification tries
/// each.
pub const WEBHOOK_SECRETS_MAX: usize = 4;
/// Least bytes of a webhook secret: shorter ones could be guessed.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 16;
/// Most bytes of a webhook secret: a longer text is a configuration mistake.
pub const WEBHOOK_SECRET_BYTES_MAX: usize = 255;
/// Outbox rows of a payment checked at a hint. Further rows become due without the hint.
pub const HINTED_WORK_MAX: usize = 100;
