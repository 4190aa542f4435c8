-- Tables, constraints and indexes.
--
-- Times are milliseconds since the Unix epoch on the store's clock. Ids are 64-bit numbers that
-- begin with the millisecond they were minted in. Digests have 32 bytes, ULIDs 16. Text codes are
-- the words that clients see. Money is BIGINT minor units; sums are NUMERIC(39).
--
-- A low fillfactor leaves room on the page for updates that change no indexed column (HOT). Tables
-- that are only inserted into are packed full. PostgreSQL plans a CHECK constraint from its text
-- for every statement, so constraints are written as short as possible.

CREATE TABLE meta (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

-- A single row: the last position and time. Every commit updates the row last. The row lock makes
-- positions dense and position order the order of visibility.
CREATE TABLE head (
    one      BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    position BIGINT  NOT NULL CHECK (position >= 0),
    at       BIGINT  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO head (position, at) VALUES (0, 0);

-- One row per group of change sets that were committed together. `position` is that of the last
-- set. `sets` and `touched` hold the ids of the sets and the keys of the rows that each set wrote,
-- in the order of positions.
CREATE TABLE commit_groups (
    position BIGINT   PRIMARY KEY,
    at       BIGINT   NOT NULL,
    sets     BIGINT[] NOT NULL,
    touched  BYTEA[]  NOT NULL,
    CONSTRAINT each_says_what_it_touched CHECK (cardinality(sets) = cardinality(touched))
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_insert_scale_factor = 0.1);
-- Most groups fit on their page. Larger ones are stored out of line without compression, because
-- digests do not compress.
ALTER TABLE commit_groups ALTER COLUMN sets SET STORAGE EXTERNAL, ALTER COLUMN touched SET STORAGE EXTERNAL;

CREATE TABLE claims (
    tenant          BIGINT NOT NULL,
    id              BYTEA  NOT NULL CHECK (octet_length(id) = 32),
    subject         BIGINT NOT NULL,
    makes           TEXT   NOT NULL,
    fingerprint     BYTEA  NOT NULL CHECK (octet_length(fingerprint) = 32),
    request         BYTEA  NOT NULL CHECK (octet_length(request) = 16),
    created_at      BIGINT NOT NULL,
    fence           BIGINT NOT NULL,
    revision        BIGINT NOT NULL,
    attempts        BIGINT NOT NULL,
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
    PRIMARY KEY (tenant, id),
    CONSTRAINT counts_begin_at_zero CHECK (LEAST(fence, revision, attempts) >= 0),
    CONSTRAINT state_has_its_columns CHECK (CASE state
        WHEN 'in_flight'    THEN (holder, lease_until, lease_ceiling) IS NOT NULL
        WHEN 'failed_retry' THEN not_before IS NOT NULL
        WHEN 'uncertain'    THEN num_nulls(holder, lease_until, lease_ceiling) = CASE WHEN not_before IS NULL THEN 0 ELSE 3 END
        WHEN 'expired'      THEN tombstone_until IS NOT NULL AND body IS NULL
        ELSE state = ANY ('{completed,failed_terminal}')
         AND (replay_until, tombstone_until, sweep_at, status, media, body) IS NOT NULL
    END)
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX claims_by_sweep ON claims (sweep_at) WHERE sweep_at IS NOT NULL;

CREATE TABLE charges (
    tenant             BIGINT  NOT NULL,
    id                 BIGINT  NOT NULL,
    amount_minor       BIGINT  NOT NULL CHECK (amount_minor > 0),
    captured           BIGINT  NOT NULL,
    refunded           BIGINT  NOT NULL,
    refunding          BIGINT  NOT NULL,
    destination        BIGINT  NOT NULL,
    created_at         BIGINT  NOT NULL,
    revision           BIGINT  NOT NULL CHECK (revision >= 0),
    wallet_account     BIGINT,
    wallet_amount      BIGINT,
    working            BIGINT,
    capture            BOOLEAN NOT NULL,
    asset              TEXT    NOT NULL,
    payment_method     TEXT    NOT NULL,
    status             TEXT    NOT NULL CHECK (status = ANY
        ('{processing,requires_capture,succeeded,failed,voided,refunded,partially_refunded,parked}')),
    provider           TEXT    NOT NULL,
    endpoint           TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    description        TEXT,
    metadata           JSONB   NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT given_back_is_not_more_than_taken CHECK (LEAST(captured, refunded, refunding) >= 0
        AND refunded <= captured - refunding),
    CONSTRAINT a_wallet_pays_a_part CHECK ((wallet_account IS NULL) = (wallet_amount IS NULL)
        AND (wallet_amount > 0 AND wallet_amount < amount_minor) IS NOT FALSE)
) WITH (fillfactor = 85);

-- Captures, voids and refunds.
CREATE TABLE operations (
    tenant             BIGINT NOT NULL,
    id                 BIGINT NOT NULL,
    charge             BIGINT NOT NULL,
    amount_minor       BIGINT NOT NULL CHECK (amount_minor > 0),
    created_at         BIGINT NOT NULL,
    revision           BIGINT NOT NULL CHECK (revision >= 0),
    kind               TEXT   NOT NULL CHECK (kind IN ('capture', 'void', 'refund')),
    asset              TEXT   NOT NULL,
    status             TEXT   NOT NULL CHECK (status IN ('processing', 'succeeded', 'failed', 'parked')),
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 85);
CREATE INDEX operations_by_charge ON operations (tenant, charge, id);
CREATE INDEX refunds_by_tenant ON operations (tenant, id) WHERE kind = 'refund';

CREATE TABLE payouts (
    tenant             BIGINT NOT NULL,
    id                 BIGINT NOT NULL,
    amount_minor       BIGINT NOT NULL CHECK (amount_minor > 0),
    account            BIGINT NOT NULL,
    created_at         BIGINT NOT NULL,
    revision           BIGINT NOT NULL CHECK (revision >= 0),
    asset              TEXT   NOT NULL,
    status             TEXT   NOT NULL CHECK (status IN ('processing', 'paid', 'failed', 'parked')),
    provider           TEXT   NOT NULL,
    endpoint           TEXT   NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    destination        TEXT,
    description        TEXT,
    metadata           JSONB  NOT NULL,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 85);

-- Work to be done at a provider: one row per payment or operation that is under way.
CREATE TABLE outbox (
    tenant        BIGINT  NOT NULL,
    id            BIGINT  NOT NULL,
    charge        BIGINT,
    payout        BIGINT,
    hold          BIGINT,
    version       BIGINT  NOT NULL CHECK (version > 0),
    step          BIGINT  NOT NULL,
    due_at        BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    generation    BIGINT  NOT NULL,
    idle_calls    BIGINT  NOT NULL,
    server_errors BIGINT  NOT NULL,
    first_sent_at BIGINT  NOT NULL,
    last_sent_at  BIGINT  NOT NULL,
    revision      BIGINT  NOT NULL,
    unknown       BOOLEAN NOT NULL,
    claim         BYTEA   NOT NULL CHECK (octet_length(claim) = 32),
    flow          TEXT    NOT NULL
        CHECK (flow = ANY ('{charge,authorize,split,capture,void,refund,payout}')),
    way           TEXT    NOT NULL CHECK (way = ANY ('{forward,back}')),
    profile       TEXT    NOT NULL,
    endpoint      TEXT    NOT NULL,
    parked        TEXT,
    PRIMARY KEY (tenant, id),
    CONSTRAINT counts_begin_at_zero CHECK (LEAST(step, generation, idle_calls, server_errors, revision) >= 0),
    CONSTRAINT work_is_for_one_payment CHECK ((charge IS NULL) <> (payout IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_by_due ON outbox (due_at, id) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (tenant, id) WHERE parked IS NOT NULL;
CREATE INDEX outbox_doubt_on_charge ON outbox (charge, tenant, id) WHERE unknown AND charge IS NOT NULL;
CREATE INDEX outbox_doubt_on_payout ON outbox (payout, tenant, id) WHERE unknown AND payout IS NOT NULL;

-- The journal and the audit log are partitioned by the id that leads with the millisecond of the
-- row, so that old ranges can be dropped. Each begins with a single partition for all ids;
-- start_partition (rules.sql) adds further ones. The last partition never ends, so every row has a
-- partition.

CREATE TABLE audit_log (
    tenant  BIGINT NOT NULL,
    subject BIGINT NOT NULL,
    id      BYTEA  NOT NULL CHECK (octet_length(id) = 16),
    at      BIGINT NOT NULL,
    fence   BIGINT NOT NULL CHECK (fence >= 0),
    kind    TEXT   NOT NULL,
    detail  TEXT   NOT NULL,
    PRIMARY KEY (tenant, subject, id)
) PARTITION BY RANGE (id);
CREATE TABLE audit_log_initial PARTITION OF audit_log
    FOR VALUES FROM (MINVALUE) TO (MAXVALUE) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);

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
    tenant     BIGINT NOT NULL,
    id         BIGINT NOT NULL,
    code       TEXT COLLATE "C" NOT NULL,
    asset      TEXT   NOT NULL,
    normal     TEXT   NOT NULL CHECK (normal IN ('debit', 'credit')),
    floor      BIGINT,
    cap        BIGINT,
    shards     BIGINT NOT NULL CHECK (shards >= 0),
    widest     BIGINT NOT NULL CHECK (widest >= 0),
    metadata   JSONB  NOT NULL,
    created_at BIGINT NOT NULL,
    revision   BIGINT NOT NULL CHECK (revision >= 0),
    PRIMARY KEY (tenant, id)
);

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
    tenant   BIGINT NOT NULL,
    account  BIGINT NOT NULL,
    shard    BIGINT NOT NULL CHECK (shard BETWEEN 0 AND 255),
    posted   BIGINT NOT NULL,
    outgoing BIGINT NOT NULL CHECK (outgoing >= 0),
    incoming BIGINT NOT NULL CHECK (incoming >= 0),
    floor    BIGINT,
    cap      BIGINT,
    revision BIGINT NOT NULL CHECK (revision >= 0),
    PRIMARY KEY (tenant, account, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE journal_transactions (
    tenant   BIGINT NOT NULL,
    id       BIGINT NOT NULL,
    kind     TEXT   NOT NULL,
    about    BIGINT,
    legs     BIGINT NOT NULL CHECK (legs >= 2),
    metadata JSONB  NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
) PARTITION BY RANGE (id);
CREATE TABLE journal_transactions_initial PARTITION OF journal_transactions
    FOR VALUES FROM (MINVALUE) TO (MAXVALUE) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);

CREATE TABLE journal_entries (
    tenant      BIGINT NOT NULL,
    transaction BIGINT NOT NULL,
    leg         BIGINT NOT NULL CHECK (leg >= 0),
    position    BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    account     BIGINT NOT NULL,
    amount      BIGINT NOT NULL CHECK (amount > 0),
    side        TEXT   NOT NULL CHECK (side = ANY ('{debit,credit}')),
    layer       TEXT   NOT NULL CHECK (layer = ANY ('{posted,pending,released}')),
    asset       TEXT   NOT NULL,
    PRIMARY KEY (tenant, transaction, leg)
) PARTITION BY RANGE (transaction);
CREATE UNIQUE INDEX journal_entries_by_account ON journal_entries (tenant, account, position, transaction, leg);
CREATE TABLE journal_entries_initial PARTITION OF journal_entries
    FOR VALUES FROM (MINVALUE) TO (MAXVALUE) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);

-- Transactions whose balance is checked when their database transaction commits. Empty between
-- commits.
CREATE TABLE unbalanced_transactions (
    tenant      BIGINT NOT NULL,
    transaction BIGINT NOT NULL
);

CREATE TABLE reversals (
    tenant    BIGINT NOT NULL,
    original  BIGINT NOT NULL,
    undone_by BIGINT NOT NULL,
    PRIMARY KEY (tenant, original)
);

CREATE TABLE holds (
    tenant        BIGINT NOT NULL,
    id            BIGINT NOT NULL,
    from_account  BIGINT NOT NULL,
    to_account    BIGINT NOT NULL,
    amount        BIGINT NOT NULL CHECK (amount > 0),
    expires_at    BIGINT NOT NULL,
    posted_amount BIGINT,
    ended_by      BIGINT,
    created_at    BIGINT NOT NULL,
    revision      BIGINT NOT NULL CHECK (revision >= 0),
    asset         TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    metadata      JSONB  NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT state_has_its_columns CHECK (CASE state
        WHEN 'pending' THEN num_nonnulls(posted_amount, ended_by) = 0
        WHEN 'posted'  THEN num_nonnulls(posted_amount, ended_by) = 2
        WHEN 'voided'  THEN ended_by IS NOT NULL AND posted_amount IS NULL
        WHEN 'lapsed'  THEN ended_by IS NOT NULL AND posted_amount IS NULL
        ELSE FALSE
    END)
) WITH (fillfactor = 80);
CREATE INDEX holds_by_expiry ON holds (expires_at, id) WHERE state = 'pending';

CREATE TABLE snapshots (
    tenant          BIGINT      NOT NULL,
    account         BIGINT      NOT NULL,
    position        BIGINT      NOT NULL,
    at              BIGINT      NOT NULL,
    entries         BIGINT      NOT NULL CHECK (entries >= 0),
    debits          NUMERIC(39) NOT NULL,
    credits         NUMERIC(39) NOT NULL,
    debits_pending  NUMERIC(39) NOT NULL,
    credits_pending NUMERIC(39) NOT NULL,
    PRIMARY KEY (tenant, account, position)
);

CREATE TABLE cursors (
    reader   TEXT COLLATE "C" PRIMARY KEY,
    position BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    revision BIGINT NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 10);
