-- Tables. Times are milliseconds since the Unix epoch on the store's clock; ids are 64-bit numbers that grow with time;
-- digests have 32 bytes, ULIDs 16; words are the words clients see. Money is BIGINT minor units, sums are NUMERIC(39).
--
-- fillfactor leaves room for rows that change in place; what never changes is packed full.

CREATE TABLE meta (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

-- The last position and its time: the one row every commit takes last, which makes positions dense and their order the
-- order in which commits become visible.
CREATE TABLE head (
    one      BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    position BIGINT  NOT NULL CHECK (position >= 0),
    at       BIGINT  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO head (position, at) VALUES (0, 0);

CREATE TABLE commits (
    position BIGINT PRIMARY KEY CHECK (position > 0),
    set_id   BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    touched  TEXT   NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE UNIQUE INDEX commits_by_set ON commits (set_id);

CREATE TABLE idempotency_keys (
    id              BYTEA  PRIMARY KEY CHECK (octet_length(id) = 32),
    tenant          BIGINT NOT NULL,
    subject         BIGINT NOT NULL,
    makes           TEXT   NOT NULL,
    fingerprint     BYTEA  NOT NULL CHECK (octet_length(fingerprint) = 32),
    request         BYTEA  NOT NULL CHECK (octet_length(request) = 16),
    created_at      BIGINT NOT NULL,
    fence           BIGINT NOT NULL CHECK (fence >= 0),
    revision        BIGINT NOT NULL CHECK (revision >= 0),
    attempts        BIGINT NOT NULL CHECK (attempts >= 0),
    state           TEXT   NOT NULL,
    holder          BIGINT,
    lease_until     BIGINT,
    lease_ceiling   BIGINT,
    not_before      BIGINT,
    replay_until    BIGINT,
    tombstone_until BIGINT,
    sweep_at        BIGINT,
    status          BIGINT,
    media           TEXT,
    location        TEXT,
    body            BYTEA,
    CONSTRAINT state_has_its_columns CHECK (CASE state
        WHEN 'in_flight'       THEN num_nonnulls(holder, lease_until, lease_ceiling) = 3
        WHEN 'failed_retry'    THEN not_before IS NOT NULL
        WHEN 'uncertain'       THEN num_nonnulls(holder, lease_until, lease_ceiling) = CASE WHEN not_before IS NULL THEN 3 ELSE 0 END
        WHEN 'completed'       THEN num_nonnulls(replay_until, tombstone_until, sweep_at, status, media, body) = 6
        WHEN 'failed_terminal' THEN num_nonnulls(replay_until, tombstone_until, sweep_at, status, media, body) = 6
        WHEN 'expired'         THEN tombstone_until IS NOT NULL AND body IS NULL
        ELSE FALSE
    END)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX idempotency_keys_by_subject ON idempotency_keys (subject, id);
CREATE INDEX idempotency_keys_by_sweep ON idempotency_keys (sweep_at) WHERE sweep_at IS NOT NULL;

CREATE TABLE charges (
    id                 BIGINT  PRIMARY KEY,
    tenant             BIGINT  NOT NULL,
    amount_minor       BIGINT  NOT NULL CHECK (amount_minor > 0),
    asset              TEXT    NOT NULL,
    payment_method     TEXT    NOT NULL,
    capture            BOOLEAN NOT NULL,
    destination        BIGINT  NOT NULL,
    description        TEXT,
    metadata           JSONB   NOT NULL,
    status             TEXT    NOT NULL
        CHECK (status IN ('processing', 'requires_capture', 'succeeded', 'failed', 'parked')),
    provider           TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         BIGINT  NOT NULL,
    revision           BIGINT  NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 85);
CREATE INDEX charges_by_tenant ON charges (tenant, id);

CREATE TABLE outbox (
    charge        BIGINT  PRIMARY KEY,
    claim         BYTEA   NOT NULL CHECK (octet_length(claim) = 32),
    tenant        BIGINT  NOT NULL,
    profile       TEXT    NOT NULL,
    endpoint      TEXT    NOT NULL,
    due_at        BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    generation    BIGINT  NOT NULL CHECK (generation >= 0),
    idle_calls    BIGINT  NOT NULL CHECK (idle_calls >= 0),
    unknown       BOOLEAN NOT NULL,
    server_errors BIGINT  NOT NULL CHECK (server_errors >= 0),
    first_sent_at BIGINT  NOT NULL,
    last_sent_at  BIGINT  NOT NULL,
    parked        TEXT,
    revision      BIGINT  NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_by_due ON outbox (due_at, charge) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (charge) WHERE parked IS NOT NULL;

CREATE TABLE audit_log (
    subject BIGINT NOT NULL,
    id      BYTEA  NOT NULL CHECK (octet_length(id) = 16),
    tenant  BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    fence   BIGINT NOT NULL CHECK (fence >= 0),
    kind    TEXT   NOT NULL,
    detail  TEXT   NOT NULL,
    PRIMARY KEY (subject, id)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);

CREATE TABLE tenants (
    name       TEXT COLLATE "C" PRIMARY KEY,
    id         BIGINT NOT NULL,
    key_policy TEXT,
    created_at BIGINT NOT NULL,
    revision   BIGINT NOT NULL CHECK (revision >= 0)
);

CREATE TABLE api_keys (
    digest     BYTEA  PRIMARY KEY CHECK (octet_length(digest) = 32),
    id         TEXT   NOT NULL,
    tenant     TEXT COLLATE "C" NOT NULL,
    scopes     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    revision   BIGINT NOT NULL CHECK (revision >= 0)
);

CREATE TABLE slots (
    number      BIGINT PRIMARY KEY CHECK (number BETWEEN 0 AND 16383),
    epoch       BIGINT NOT NULL CHECK (epoch >= 0),
    lease_until BIGINT NOT NULL,
    revision    BIGINT NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 50);

CREATE TABLE accounts (
    id         BIGINT PRIMARY KEY,
    tenant     BIGINT NOT NULL,
    code       TEXT COLLATE "C" NOT NULL,
    asset      TEXT   NOT NULL,
    normal     TEXT   NOT NULL CHECK (normal IN ('debit', 'credit')),
    floor      BIGINT,
    cap        BIGINT,
    shards     BIGINT NOT NULL CHECK (shards >= 0),
    widest     BIGINT NOT NULL CHECK (widest >= 0),
    metadata   JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    revision   BIGINT NOT NULL CHECK (revision >= 0)
);
CREATE INDEX accounts_by_tenant ON accounts (tenant, id);

CREATE TABLE account_names (
    tenant  BIGINT NOT NULL,
    code    TEXT COLLATE "C" NOT NULL,
    account BIGINT NOT NULL,
    PRIMARY KEY (tenant, code)
);

CREATE TABLE assets (
    tenant     BIGINT NOT NULL,
    asset      TEXT COLLATE "C" NOT NULL,
    exponent   BIGINT NOT NULL CHECK (exponent >= 0),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, asset)
);

CREATE TABLE balances (
    account  BIGINT NOT NULL,
    shard    BIGINT NOT NULL CHECK (shard BETWEEN 0 AND 255),
    posted   BIGINT NOT NULL,
    outgoing BIGINT NOT NULL CHECK (outgoing >= 0),
    incoming BIGINT NOT NULL CHECK (incoming >= 0),
    floor    BIGINT,
    cap      BIGINT,
    revision BIGINT NOT NULL CHECK (revision >= 0),
    PRIMARY KEY (account, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE journal_transactions (
    id       BIGINT PRIMARY KEY,
    tenant   BIGINT NOT NULL,
    kind     TEXT   NOT NULL,
    about    BIGINT,
    legs     BIGINT NOT NULL CHECK (legs >= 2),
    metadata JSONB  NOT NULL,
    at       BIGINT NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX journal_transactions_by_tenant ON journal_transactions (tenant, id);

CREATE TABLE journal_entries (
    transaction BIGINT NOT NULL,
    leg         BIGINT NOT NULL CHECK (leg >= 0),
    position    BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    account     BIGINT NOT NULL,
    side        TEXT   NOT NULL CHECK (side IN ('debit', 'credit')),
    layer       TEXT   NOT NULL CHECK (layer IN ('posted', 'pending', 'released')),
    amount      BIGINT NOT NULL CHECK (amount > 0),
    asset       TEXT   NOT NULL,
    PRIMARY KEY (transaction, leg)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE UNIQUE INDEX journal_entries_by_account ON journal_entries (account, position, transaction, leg);

CREATE TABLE reversals (
    original  BIGINT PRIMARY KEY,
    undone_by BIGINT NOT NULL
);

CREATE TABLE holds (
    id            BIGINT PRIMARY KEY,
    tenant        BIGINT NOT NULL,
    from_account  BIGINT NOT NULL,
    to_account    BIGINT NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount > 0),
    asset         TEXT   NOT NULL,
    expires_at    BIGINT NOT NULL,
    state         TEXT   NOT NULL,
    posted_amount BIGINT,
    ended_by      BIGINT,
    metadata      JSONB  NOT NULL,
    created_at    BIGINT NOT NULL,
    revision      BIGINT NOT NULL CHECK (revision >= 0),
    CONSTRAINT state_has_its_columns CHECK (CASE state
        WHEN 'pending' THEN num_nonnulls(posted_amount, ended_by) = 0
        WHEN 'posted'  THEN num_nonnulls(posted_amount, ended_by) = 2
        WHEN 'voided'  THEN ended_by IS NOT NULL AND posted_amount IS NULL
        WHEN 'lapsed'  THEN ended_by IS NOT NULL AND posted_amount IS NULL
        ELSE FALSE
    END)
) WITH (fillfactor = 80);
CREATE INDEX holds_by_tenant ON holds (tenant, id);
CREATE INDEX holds_by_expiry ON holds (expires_at, id) WHERE state = 'pending';

CREATE TABLE snapshots (
    account         BIGINT      NOT NULL,
    position        BIGINT      NOT NULL,
    at              BIGINT      NOT NULL,
    debits          NUMERIC(39) NOT NULL,
    credits         NUMERIC(39) NOT NULL,
    debits_pending  NUMERIC(39) NOT NULL,
    credits_pending NUMERIC(39) NOT NULL,
    entries         BIGINT      NOT NULL CHECK (entries >= 0),
    PRIMARY KEY (account, position)
);

CREATE TABLE cursors (
    reader   TEXT COLLATE "C" PRIMARY KEY,
    position BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    revision BIGINT NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 10);

-- The server's clock in milliseconds, rounded down.
CREATE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT;

-- A write of several rows that missed one stops its transaction.
CREATE FUNCTION all_of(done BIGINT, meant BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF done <> meant THEN
        RAISE EXCEPTION 'a statement wrote % of % rows', done, meant USING ERRCODE = 'CF001';
    END IF;
    RETURN TRUE;
END $$;
