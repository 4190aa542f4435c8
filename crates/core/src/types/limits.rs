//! Every bound of the system, with its reason. A loop, queue, list or field without a bound here is a defect.

/// Bytes of an `Idempotency-Key`: what Stripe accepts, and what fits an index page many times over.
pub const KEY_BYTES_MAX: usize = 255;
/// Changes in one set: the weakest backend (DynamoDB) takes 100 actions, one of which is the set's own id.
pub const CHANGES_PER_SET_MAX: usize = 99;
/// Sets one durable write may carry: beyond this a group no longer gains, it only makes its first member wait.
pub const SETS_PER_GROUP_MAX: usize = 512;
/// Sets that may wait for the committer: full means the store is behind, and new work is refused as throttled.
pub const COMMIT_QUEUE_MAX: usize = 4_096;
/// Rows one page of a list may hold.
pub const PAGE_MAX: usize = 100;
/// Rows a page holds when the caller does not say.
pub const PAGE_DEFAULT: usize = 20;
/// Rows a store returns from one internal scan (`due`, `feed`, verification).
pub const SCAN_MAX: usize = 1_000;
/// Metadata pairs on one resource, as in Stripe's API.
pub const METADATA_PAIRS_MAX: usize = 50;
/// Bytes of a metadata name.
pub const METADATA_NAME_BYTES_MAX: usize = 40;
/// Bytes of a metadata value.
pub const METADATA_VALUE_BYTES_MAX: usize = 500;
/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 1_000;
/// Bytes of a payment method token.
pub const PAYMENT_METHOD_BYTES_MAX: usize = 255;
/// Bytes of a reference a provider gives us; longer ones are not stored and count as an unreadable answer.
pub const PROVIDER_REFERENCE_BYTES_MAX: usize = 255;
/// Largest amount, in minor units: 15 digits survive every JSON reader, including those that use doubles.
pub const AMOUNT_MAX: i64 = 999_999_999_999_999;
/// Peers of one server: each has connections, a circuit breaker and an account per tenant and asset.
pub const PEERS_MAX: usize = 100;
/// Bytes of a peer's name: with a role and an asset it is an account's code.
pub const PEER_NAME_BYTES_MAX: usize = 32;
/// Bytes of a tenant's name.
pub const TENANT_NAME_BYTES_MAX: usize = 64;
/// Worker slots: 14 bits of an id.
pub const WORKER_SLOTS: u16 = 16_384;
/// Share of the slots in use at which an alarm is raised.
pub const WORKER_SLOTS_ALARM_PERCENT: u16 = 80;
/// Ids one worker may mint within one millisecond: 8 bits of an id.
pub const IDS_PER_MS: u16 = 256;
/// How far ids may run ahead of the store's clock in a burst before minting refuses.
pub const ID_RUN_AHEAD_MS: i64 = 1_000;
/// Twins that may wait on one key; the next is told at once that the key is in use.
pub const WAITERS_PER_KEY_MAX: usize = 10_000;
/// Legs of one transaction: with its entries and balances it still fits the weakest backend's 100 actions.
pub const LEGS_MAX: usize = 40;
/// Bytes of an asset's code.
pub const ASSET_CODE_BYTES_MAX: usize = 16;
/// Decimals a tenant's own asset may have: a unit of it must still fit an amount.
pub const ASSET_EXPONENT_MAX: u8 = 9;
/// Bytes of an account's code.
pub const ACCOUNT_CODE_BYTES_MAX: usize = 64;
/// Shards of one account.
pub const SHARDS_MAX: u16 = 256;
/// Transactions in one bulk request.
pub const BULK_MAX: usize = 1_000;
/// Entries an account gains before its next snapshot: what a balance reads at most beside one snapshot, plus the lag.
pub const SNAPSHOT_EVERY: u64 = 256;
/// Snapshots kept of one account, closer together the younger they are.
pub const SNAPSHOTS_MAX: usize = 64;
/// Bytes of a provider's signature header: several signatures fit while a secret is changed.
pub const SIGNATURE_BYTES_MAX: usize = 1_024;
/// Parts of a provider's signature header: a time, and a signature for each secret and scheme in use.
pub const SIGNATURE_PARTS_MAX: usize = 16;
/// Secrets one provider may sign with at a time: an old one, a new one, and room for a mistake. Each is tried.
pub const WEBHOOK_SECRETS_MAX: usize = 4;
/// Bytes of such a secret at least: what is shorter may be guessed.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 16;
/// Bytes of such a secret at most.
pub const WEBHOOK_SECRET_BYTES_MAX: usize = 255;
/// Work on one payment that a hint looks at.
pub const HINTED_WORK_MAX: usize = 100;
