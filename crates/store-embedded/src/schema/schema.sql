-- The embedded store's tables, format 1.
--
-- Every table is STRICT. Times are milliseconds since the Unix epoch on the store's clock. Ids are
-- 64-bit integers that grow with time. Digests are 32-byte blobs, ULIDs 16-byte blobs.
--
-- Triggers hold for every program that writes the file. RAISE(FAIL) stops the statement at the
-- first row that breaks a rule. The flusher checks the BEFORE INSERT rules once per flush instead
-- (tables/new_rows.rs). All other triggers also hold for the flusher.

-- The store's own facts: secret, digest of this schema, clock anchor, name of the opening.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------------------------
-- Idempotency records
-- ---------------------------------------------------------------------------------------------

-- A row is keyed by the sequential id of the resource that its claim makes. The random digest of
-- the key is only in the index, so large answers never pass through a tree in random order.
CREATE TABLE claims (
    subject         INTEGER PRIMARY KEY,
    id              BLOB    NOT NULL CHECK (length(id) = 32),
    partition       INTEGER NOT NULL,
    makes           TEXT    NOT NULL,
    tenant          INTEGER NOT NULL,
    fingerprint     BLOB    NOT NULL,
    request         BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    revision        INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    state           TEXT    NOT NULL,
    -- In flight, or uncertain and held.
    holder          INTEGER,
    lease_until     INTEGER,
    lease_ceiling   INTEGER,
    -- Put off, or uncertain and waiting.
    not_before      INTEGER,
    -- Settled or expired.
    replay_until    INTEGER,
    tombstone_until INTEGER,
    sweep_at        INTEGER,
    -- The stored answer, byte for byte.
    status          INTEGER,
    media           TEXT,
    location        TEXT,
    body            BLOB
) STRICT;

-- The key index is partitioned by arrival: a new key goes into the youngest partition,
-- whose pages are in the cache. In one tree of all digests each new key would dirty its own page.
CREATE UNIQUE INDEX claims_by_id ON claims (partition, id);
CREATE INDEX claims_by_sweep ON claims (sweep_at) WHERE sweep_at IS NOT NULL;

-- The partitions that hold keys, youngest first, because retries look for recent keys.
CREATE VIEW claim_partitions (partition) AS
WITH RECURSIVE partitions (partition) AS (
    SELECT max(partition) FROM claims
    UNION ALL
    SELECT (SELECT max(claims.partition) FROM claims WHERE claims.partition < partitions.partition)
    FROM partitions WHERE partitions.partition IS NOT NULL
)
SELECT partition FROM partitions WHERE partition IS NOT NULL;

-- The first eight bytes of every key of a closed partition, as one blob. An opening fills its
-- Bloom filter from these lists. A list may contain keys that were removed since.
CREATE TABLE key_partitions (
    partition INTEGER PRIMARY KEY,
    keys   BLOB    NOT NULL
) STRICT;

-- A key that is missing in its list is taken for a new key, and is executed a second time.
CREATE TRIGGER key_partitions_are_whole BEFORE INSERT ON key_partitions
WHEN EXISTS (SELECT 1 FROM key_partitions WHERE partition = NEW.partition)
  OR NEW.partition >= (SELECT max(partition) FROM claims)
  OR length(NEW.keys) <> 8 * (SELECT count(*) FROM claims WHERE partition = NEW.partition)
BEGIN
    SELECT RAISE(FAIL, 'the keys of a closed partition are listed once, and all of them');
END;
CREATE TRIGGER key_partitions_are_not_rewritten BEFORE UPDATE ON key_partitions
BEGIN
    SELECT RAISE(FAIL, 'the keys of a closed partition are listed once');
END;

CREATE TRIGGER claims_are_not_replaced BEFORE INSERT ON claims
WHEN EXISTS (SELECT 1 FROM claims WHERE subject = NEW.subject) OR EXISTS (
    SELECT 1 FROM claim_partitions CROSS JOIN claims ON claims.partition = claim_partitions.partition WHERE claims.id = NEW.id
)
BEGIN
    SELECT RAISE(FAIL, 'a key has one record, and what a claim makes has one claim');
END;
CREATE TRIGGER claims_go_into_an_open_partition BEFORE INSERT ON claims
WHEN EXISTS (SELECT 1 FROM key_partitions WHERE partition = NEW.partition)
BEGIN
    SELECT RAISE(FAIL, 'this partition is closed: take the highest of claims, or one above all of key_partitions');
END;
CREATE TRIGGER claims_move_into_an_open_partition BEFORE UPDATE OF partition, id ON claims
WHEN (NEW.partition <> OLD.partition OR NEW.id <> OLD.id) AND EXISTS (SELECT 1 FROM key_partitions WHERE partition = NEW.partition)
BEGIN
    SELECT RAISE(FAIL, 'this partition is closed: take the highest of claims, or one above all of key_partitions');
END;
CREATE TRIGGER claims_do_not_displace_each_other BEFORE UPDATE OF subject ON claims
WHEN NEW.subject <> OLD.subject AND EXISTS (SELECT 1 FROM claims WHERE subject = NEW.subject)
BEGIN
    SELECT RAISE(FAIL, 'what a claim makes has one claim');
END;
CREATE TRIGGER claims_only_move_forward BEFORE UPDATE ON claims
WHEN NEW.revision <= OLD.revision
  OR NEW.fence < OLD.fence
  OR NEW.id <> OLD.id
  OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
          THEN NOT ((NEW.subject <> OLD.subject AND NEW.fence > OLD.fence)
                 OR (NEW.subject = OLD.subject AND NEW.state = 'expired' AND OLD.state <> 'expired'))
          ELSE NEW.subject <> OLD.subject
     END
BEGIN
    SELECT RAISE(FAIL, 'a claim only moves forward: fence and revision grow, and a settled claim only expires or is claimed anew under a higher fence');
END;
CREATE TRIGGER claims_are_kept_while_needed BEFORE DELETE ON claims
WHEN OLD.sweep_at IS NULL
BEGIN
    SELECT RAISE(FAIL, 'a claim that is not settled is never removed');
END;

-- ---------------------------------------------------------------------------------------------
-- Payments
-- ---------------------------------------------------------------------------------------------

CREATE TABLE charges (
    id                 INTEGER PRIMARY KEY,
    tenant             INTEGER NOT NULL,
    -- The order, fixed at creation.
    amount_minor       INTEGER NOT NULL CHECK (amount_minor > 0),
    asset              TEXT    NOT NULL,
    payment_method     TEXT    NOT NULL,
    capture            INTEGER NOT NULL,
    destination        INTEGER NOT NULL,
    description        TEXT,
    metadata           TEXT    NOT NULL,
    -- The part of the amount that a wallet pays.
    wallet_account     INTEGER,
    wallet_amount      INTEGER
        CHECK (CASE WHEN wallet_account IS NULL THEN wallet_amount IS NULL
                    ELSE wallet_amount IS NOT NULL AND wallet_amount > 0 AND wallet_amount < amount_minor END),
    status             TEXT    NOT NULL,
    captured           INTEGER NOT NULL CHECK (captured >= 0),
    refunded           INTEGER NOT NULL CHECK (refunded >= 0),
    refunding          INTEGER NOT NULL CHECK (refunding >= 0 AND refunded <= captured - refunding),
    -- The capture or void that is under way.
    working            INTEGER,
    provider           TEXT    NOT NULL,
    endpoint           TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL
) STRICT;
CREATE INDEX charges_by_tenant ON charges (tenant);

CREATE TRIGGER charges_keep_their_order
BEFORE UPDATE OF id, tenant, amount_minor, asset, payment_method, capture, destination, wallet_account, wallet_amount,
    description, metadata, provider, endpoint ON charges
BEGIN
    SELECT RAISE(FAIL, 'what a charge was ordered for and where never changes');
END;
CREATE TRIGGER charges_only_move_forward
BEFORE UPDATE OF status, captured, refunded, refunding, working, provider_reference, failure, decline_code, created_at,
    revision ON charges
WHEN NEW.revision <= OLD.revision
  OR NEW.captured < OLD.captured
  OR NEW.refunded < OLD.refunded
  OR NOT (OLD.status = 'processing'
       OR OLD.status = 'parked'
       OR OLD.status = NEW.status
       OR (OLD.status = 'requires_capture' AND NEW.status IN ('succeeded', 'voided', 'parked'))
       OR (OLD.status = 'succeeded' AND NEW.status IN ('partially_refunded', 'refunded'))
       OR (OLD.status = 'partially_refunded' AND NEW.status = 'refunded'))
BEGIN
    SELECT RAISE(FAIL, 'a charge only moves forward: its revision grows, what was taken or given back does not fall, and what has ended stays so');
END;
CREATE TRIGGER charges_are_kept BEFORE DELETE ON charges
BEGIN
    SELECT RAISE(FAIL, 'charges are never removed');
END;

-- Captures, voids and refunds of a charge.
CREATE TABLE operations (
    id                 INTEGER PRIMARY KEY,
    tenant             INTEGER NOT NULL,
    charge             INTEGER NOT NULL,
    kind               TEXT    NOT NULL,
    amount_minor       INTEGER NOT NULL CHECK (amount_minor > 0),
    asset              TEXT    NOT NULL,
    status             TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL
) STRICT;
CREATE INDEX operations_by_charge ON operations (charge);
CREATE INDEX refunds_by_tenant ON operations (tenant) WHERE kind = 'refund';

CREATE TRIGGER operations_end_once
BEFORE UPDATE OF status, provider_reference, failure, decline_code, revision ON operations
WHEN OLD.status = 'succeeded' OR OLD.status = 'failed' OR NEW.revision <= OLD.revision
BEGIN
    SELECT RAISE(FAIL, 'an operation ends once, and its revision grows');
END;
CREATE TRIGGER operations_keep_what_was_asked
BEFORE UPDATE OF id, tenant, charge, kind, amount_minor, asset, created_at ON operations
BEGIN
    SELECT RAISE(FAIL, 'what an operation was asked for never changes');
END;
CREATE TRIGGER operations_are_kept BEFORE DELETE ON operations
BEGIN
    SELECT RAISE(FAIL, 'operations are never removed');
END;
CREATE TRIGGER operations_are_not_replaced BEFORE INSERT ON operations
WHEN EXISTS (SELECT 1 FROM operations WHERE id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'operations are never removed');
END;

CREATE TABLE payouts (
    id                 INTEGER PRIMARY KEY,
    tenant             INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL CHECK (amount_minor > 0),
    asset              TEXT    NOT NULL,
    account            INTEGER NOT NULL,
    destination        TEXT,
    description        TEXT,
    metadata           TEXT    NOT NULL,
    status             TEXT    NOT NULL,
    provider           TEXT    NOT NULL,
    endpoint           TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL
) STRICT;
CREATE INDEX payouts_by_tenant ON payouts (tenant);

CREATE TRIGGER payouts_end_once
BEFORE UPDATE OF status, provider_reference, failure, decline_code, revision ON payouts
WHEN OLD.status = 'paid' OR OLD.status = 'failed' OR NEW.revision <= OLD.revision
BEGIN
    SELECT RAISE(FAIL, 'a payout ends once, and its revision grows');
END;
CREATE TRIGGER payouts_keep_what_was_asked
BEFORE UPDATE OF id, tenant, amount_minor, asset, account, destination, description, metadata, provider, endpoint,
    created_at ON payouts
BEGIN
    SELECT RAISE(FAIL, 'what a payout was asked for never changes');
END;
CREATE TRIGGER payouts_are_kept BEFORE DELETE ON payouts
BEGIN
    SELECT RAISE(FAIL, 'payouts are never removed');
END;
CREATE TRIGGER payouts_are_not_replaced BEFORE INSERT ON payouts
WHEN EXISTS (SELECT 1 FROM payouts WHERE id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'payouts are never removed');
END;

-- Work that a claim has started: a saga for a charge or for a payout.
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY,
    charge        INTEGER,
    payout        INTEGER CHECK ((payout IS NULL) <> (charge IS NULL)),
    -- The saga's definition, its progress, and the ledger hold it has made.
    flow          TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    step          INTEGER NOT NULL,
    way           TEXT    NOT NULL CHECK (way = 'forward' OR way = 'back'),
    hold          INTEGER,
    claim         BLOB    NOT NULL,
    tenant        INTEGER NOT NULL,
    profile       TEXT    NOT NULL,
    endpoint      TEXT    NOT NULL,
    due_at        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    idle_calls    INTEGER NOT NULL,
    unknown       INTEGER NOT NULL,
    server_errors INTEGER NOT NULL,
    first_sent_at INTEGER NOT NULL,
    last_sent_at  INTEGER NOT NULL,
    parked        TEXT,
    revision      INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_by_due ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (tenant) WHERE parked IS NOT NULL;
-- A provider's event names only a payment. Work without unknown outcomes stays out of both indexes.
CREATE INDEX outbox_doubt_on_charge ON outbox (charge) WHERE unknown = 1 AND charge IS NOT NULL;
CREATE INDEX outbox_doubt_on_payout ON outbox (payout) WHERE unknown = 1 AND payout IS NOT NULL;

CREATE TRIGGER outbox_keeps_its_saga
BEFORE UPDATE OF id, charge, payout, flow, version, profile, endpoint ON outbox
BEGIN
    SELECT RAISE(FAIL, 'the saga and the provider of a payment never change');
END;
CREATE TRIGGER outbox_only_moves_forward BEFORE UPDATE ON outbox
WHEN NEW.revision <= OLD.revision
  OR (NEW.generation < OLD.generation AND NEW.step = OLD.step AND NEW.way = OLD.way)
BEGIN
    SELECT RAISE(FAIL, 'work only moves forward: its revision grows, and a key that was given up for a step does not come back');
END;

-- Clustered by subject: a timeline is one range.
CREATE TABLE audit_log (
    subject INTEGER NOT NULL,
    id      BLOB    NOT NULL,
    tenant  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    PRIMARY KEY (subject, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_log_is_not_rewritten BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(FAIL, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_is_kept BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(FAIL, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_is_not_replaced BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE subject = NEW.subject AND id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'the audit log is append-only');
END;

-- ---------------------------------------------------------------------------------------------
-- Tenants and processes
-- ---------------------------------------------------------------------------------------------

CREATE TABLE tenants (
    name       TEXT PRIMARY KEY,
    id         INTEGER NOT NULL,
    key_policy TEXT,
    created_at INTEGER NOT NULL,
    revision   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    digest     BLOB PRIMARY KEY,
    id         TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    revision   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Leases of worker slots.
CREATE TABLE slots (
    number      INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    revision    INTEGER NOT NULL
) STRICT;

-- ---------------------------------------------------------------------------------------------
-- The feed of commits
-- ---------------------------------------------------------------------------------------------

CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    set_id   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    touched  BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX commits_by_set ON commits (set_id);

CREATE TRIGGER commits_are_not_rewritten BEFORE UPDATE ON commits
BEGIN
    SELECT RAISE(FAIL, 'the log of commits is append-only');
END;
CREATE TRIGGER commits_are_kept BEFORE DELETE ON commits
BEGIN
    SELECT RAISE(FAIL, 'the log of commits is append-only');
END;
CREATE TRIGGER commits_are_not_replaced BEFORE INSERT ON commits
WHEN NEW.position <= (SELECT max(position) FROM commits)
BEGIN
    SELECT RAISE(FAIL, 'the log of commits is append-only');
END;

-- ---------------------------------------------------------------------------------------------
-- The ledger
-- ---------------------------------------------------------------------------------------------

CREATE TABLE accounts (
    id         INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    code       TEXT    NOT NULL,
    asset      TEXT    NOT NULL,
    normal     TEXT    NOT NULL CHECK (normal = 'debit' OR normal = 'credit'),
    floor      INTEGER,
    cap        INTEGER,
    shards     INTEGER NOT NULL,
    widest     INTEGER NOT NULL,
    metadata   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revision   INTEGER NOT NULL
) STRICT;
CREATE INDEX accounts_by_tenant ON accounts (tenant);

CREATE TRIGGER accounts_keep_their_terms
BEFORE UPDATE OF id, tenant, code, asset, normal, floor, cap, metadata, created_at ON accounts
BEGIN
    SELECT RAISE(FAIL, 'what an account was opened with never changes, only its shards do');
END;
CREATE TRIGGER accounts_are_kept BEFORE DELETE ON accounts
BEGIN
    SELECT RAISE(FAIL, 'accounts are never removed');
END;
CREATE TRIGGER accounts_are_not_replaced BEFORE INSERT ON accounts
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'accounts are never removed');
END;

CREATE TABLE account_names (
    tenant  INTEGER NOT NULL,
    code    TEXT    NOT NULL,
    account INTEGER NOT NULL,
    PRIMARY KEY (tenant, code)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER account_names_are_not_rewritten BEFORE UPDATE ON account_names
BEGIN
    SELECT RAISE(FAIL, 'the names of accounts are append-only');
END;
CREATE TRIGGER account_names_are_kept BEFORE DELETE ON account_names
BEGIN
    SELECT RAISE(FAIL, 'the names of accounts are append-only');
END;
CREATE TRIGGER account_names_are_not_replaced BEFORE INSERT ON account_names
WHEN EXISTS (SELECT 1 FROM account_names WHERE tenant = NEW.tenant AND code = NEW.code)
BEGIN
    SELECT RAISE(FAIL, 'the names of accounts are append-only');
END;

CREATE TABLE assets (
    tenant     INTEGER NOT NULL,
    code       TEXT    NOT NULL,
    exponent   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, code)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER assets_are_not_rewritten BEFORE UPDATE ON assets
BEGIN
    SELECT RAISE(FAIL, 'assets are append-only');
END;
CREATE TRIGGER assets_are_kept BEFORE DELETE ON assets
BEGIN
    SELECT RAISE(FAIL, 'assets are append-only');
END;
CREATE TRIGGER assets_are_not_replaced BEFORE INSERT ON assets
WHEN EXISTS (SELECT 1 FROM assets WHERE tenant = NEW.tenant AND code = NEW.code)
BEGIN
    SELECT RAISE(FAIL, 'assets are append-only');
END;

-- Guarded balances, one row per shard.
CREATE TABLE balances (
    account  INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    posted   INTEGER NOT NULL,
    outgoing INTEGER NOT NULL CHECK (outgoing >= 0),
    incoming INTEGER NOT NULL CHECK (incoming >= 0),
    floor    INTEGER,
    cap      INTEGER,
    revision INTEGER NOT NULL,
    PRIMARY KEY (account, shard)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER balances_only_move_forward BEFORE UPDATE ON balances
WHEN NEW.revision <= OLD.revision OR NEW.account <> OLD.account OR NEW.shard <> OLD.shard
BEGIN
    SELECT RAISE(FAIL, 'a balance only moves forward: its revision grows, and it stays with its account and shard');
END;
CREATE TRIGGER balances_are_kept BEFORE DELETE ON balances
BEGIN
    SELECT RAISE(FAIL, 'balances are never removed');
END;
CREATE TRIGGER balances_are_not_replaced BEFORE INSERT ON balances
WHEN EXISTS (SELECT 1 FROM balances WHERE account = NEW.account AND shard = NEW.shard)
BEGIN
    SELECT RAISE(FAIL, 'a balance that is there is updated, not inserted');
END;

-- A transaction is written entries first. The transaction row closes over its entries if they
-- balance, and no entry can be added after that.
CREATE TABLE journal_transactions (
    id       INTEGER PRIMARY KEY,
    tenant   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    about    INTEGER,
    metadata TEXT    NOT NULL,
    legs     INTEGER NOT NULL
) STRICT;
CREATE INDEX journal_transactions_by_tenant ON journal_transactions (tenant);

CREATE TRIGGER journal_transactions_balance BEFORE INSERT ON journal_transactions
BEGIN
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM journal_transactions WHERE id = NEW.id)
        THEN RAISE(FAIL, 'the journal is append-only')
        -- An id that SQLite is left to choose reads as -1 here: its entries cannot be checked.
        WHEN NEW.id < 0 OR NEW.legs < 2
          OR NEW.legs <> (SELECT count(*) FROM journal_entries WHERE transaction_id = NEW.id)
        THEN RAISE(FAIL, 'a transaction has an id and at least two entries, as many as it says, all written before it')
        WHEN EXISTS (SELECT 1 FROM journal_entries WHERE transaction_id = NEW.id GROUP BY asset, layer
                     HAVING sum(CASE side WHEN 'debit' THEN amount ELSE -amount END) <> 0)
        THEN RAISE(FAIL, 'the debits and credits of a transaction are equal in every asset and layer')
    END;
END;
CREATE TRIGGER journal_transactions_are_not_rewritten BEFORE UPDATE ON journal_transactions
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_transactions_are_kept BEFORE DELETE ON journal_transactions
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;

CREATE TABLE journal_entries (
    transaction_id INTEGER NOT NULL,
    leg            INTEGER NOT NULL,
    account        INTEGER NOT NULL,
    side           TEXT    NOT NULL CHECK (side = 'debit' OR side = 'credit'),
    layer          TEXT    NOT NULL CHECK (layer = 'posted' OR layer = 'pending' OR layer = 'released'),
    amount         INTEGER NOT NULL CHECK (amount > 0),
    asset          TEXT    NOT NULL,
    position       INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    PRIMARY KEY (transaction_id, leg)
) STRICT, WITHOUT ROWID;
-- An account's entries in commit order: pages, and sums up to any point.
CREATE INDEX journal_by_account ON journal_entries (account, position, transaction_id, leg);

CREATE TRIGGER journal_entries_come_first BEFORE INSERT ON journal_entries
WHEN EXISTS (SELECT 1 FROM journal_transactions WHERE id = NEW.transaction_id)
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_entries_are_not_rewritten BEFORE UPDATE ON journal_entries
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_entries_are_kept BEFORE DELETE ON journal_entries
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;

CREATE TABLE reversals (
    original  INTEGER PRIMARY KEY,
    undone_by INTEGER NOT NULL
) STRICT;

CREATE TRIGGER reversals_are_not_rewritten BEFORE UPDATE ON reversals
BEGIN
    SELECT RAISE(FAIL, 'reversals are append-only');
END;
CREATE TRIGGER reversals_are_kept BEFORE DELETE ON reversals
BEGIN
    SELECT RAISE(FAIL, 'reversals are append-only');
END;
CREATE TRIGGER reversals_are_not_replaced BEFORE INSERT ON reversals
WHEN EXISTS (SELECT 1 FROM reversals WHERE original = NEW.original)
BEGIN
    SELECT RAISE(FAIL, 'reversals are append-only');
END;

CREATE TABLE holds (
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    from_account  INTEGER NOT NULL,
    to_account    INTEGER NOT NULL,
    amount        INTEGER NOT NULL CHECK (amount > 0),
    asset         TEXT    NOT NULL,
    expires_at    INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    -- Once the hold has ended.
    posted_amount INTEGER,
    ended_by      INTEGER,
    metadata      TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT;
CREATE INDEX holds_by_deadline ON holds (expires_at) WHERE state = 'pending';

CREATE TRIGGER holds_end_once BEFORE UPDATE ON holds
WHEN OLD.state <> 'pending' OR NEW.state = 'pending' OR NEW.revision <= OLD.revision
BEGIN
    SELECT RAISE(FAIL, 'a hold ends once, and its revision grows');
END;
CREATE TRIGGER holds_keep_their_terms
BEFORE UPDATE OF id, tenant, from_account, to_account, amount, asset, expires_at, metadata, created_at ON holds
BEGIN
    SELECT RAISE(FAIL, 'what a hold was made for never changes');
END;
CREATE TRIGGER holds_are_kept BEFORE DELETE ON holds
BEGIN
    SELECT RAISE(FAIL, 'holds are never removed');
END;
CREATE TRIGGER holds_are_not_replaced BEFORE INSERT ON holds
WHEN EXISTS (SELECT 1 FROM holds WHERE id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'holds are never removed');
END;

-- Sums of an account at a position. A sum is a 128-bit integer: 16 bytes, big-endian.
CREATE TABLE snapshots (
    account         INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    debits          BLOB    NOT NULL CHECK (length(debits) = 16),
    credits         BLOB    NOT NULL CHECK (length(credits) = 16),
    debits_pending  BLOB    NOT NULL CHECK (length(debits_pending) = 16),
    credits_pending BLOB    NOT NULL CHECK (length(credits_pending) = 16),
    entries         INTEGER NOT NULL,
    PRIMARY KEY (account, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
    reader   TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
