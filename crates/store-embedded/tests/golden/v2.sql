-- A store as format 2 wrote it: accounts, a transfer and its reversal, a hold at work and one that was posted.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('clock_boot_id','00000000-0000-0000-0000-000000000001');
INSERT INTO meta VALUES('clock_boottime_ms',5000);
INSERT INTO meta VALUES('clock_store_ms',1760000000000);
INSERT INTO meta VALUES('secret',X'deadbeef00000000000000000000000000000000000000000000000000000000');
CREATE TABLE claims (
    subject         INTEGER PRIMARY KEY,
    id              BLOB    NOT NULL CHECK (length(id) = 32),
    tenant          INTEGER NOT NULL,
    fingerprint     BLOB    NOT NULL,
    request         BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    revision        INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    state           TEXT    NOT NULL,
    holder          INTEGER,
    lease_until     INTEGER,
    lease_ceiling   INTEGER,
    not_before      INTEGER,
    replay_until    INTEGER,
    tombstone_until INTEGER,
    sweep_at        INTEGER,
    status          INTEGER,
    media           TEXT,
    location        TEXT,
    body            BLOB
, makes TEXT NOT NULL DEFAULT 'charge') STRICT;
INSERT INTO claims VALUES(601,X'9d871d0966c6beab21296a2fef57f59fc493df1ce363a7432ae918a1b450a5e1',2,X'9d871d0966c6beab21296a2fef57f59fc493df1ce363a7432ae918a1b450a5e1',X'0199c82cc000beab21296a2fef57f59f',1760000000000,1,1,1,'in_flight',16385,1760000030000,1760003600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'transfer');
CREATE TABLE charges (
    id                 INTEGER PRIMARY KEY,
    tenant             INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL CHECK (amount_minor > 0),
    asset              TEXT    NOT NULL,
    payment_method     TEXT    NOT NULL,
    capture            INTEGER NOT NULL,
    destination        INTEGER NOT NULL,
    description        TEXT,
    metadata           TEXT    NOT NULL,
    status             TEXT    NOT NULL,
    provider           TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL
) STRICT;
CREATE TABLE outbox (
    charge        INTEGER PRIMARY KEY,
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
CREATE TABLE tenants (
    name         TEXT PRIMARY KEY,
    id           INTEGER NOT NULL,
    key_policy   TEXT,
    created_at   INTEGER NOT NULL,
    revision     INTEGER NOT NULL
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
CREATE TABLE slots (
    number      INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    revision    INTEGER NOT NULL
) STRICT;
CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    set_id   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    touched  BLOB    NOT NULL
) STRICT;
INSERT INTO commits VALUES(1,1,1760000000000,X'0800000000000001f50900000000000000010b77616c6c65743a726963680800000000000001f60900000000000000010b77616c6c65743a706f6f720a000000000000000106504f494e54530b00000000000001f500');
INSERT INTO commits VALUES(2,2,1760000000000,X'019d871d0966c6beab21296a2fef57f59fc493df1ce363a7432ae918a1b450a5e10c00000000000002590c000000000000025a0d00000000000002590c000000000000025b0e000000000000025b0c000000000000025c0e000000000000025c0b00000000000001f500');
INSERT INTO commits VALUES(3,3,1760000000000,X'0c000000000000025d0e000000000000025c0b00000000000001f5000f00000000000001f50000000000000002100a70726f6a656374696f6e');
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
INSERT INTO accounts VALUES(501,1,'wallet:rich','USD','credit',-50,1000000,2,4,'{"order":"1001"}',1760000000000,1);
INSERT INTO accounts VALUES(502,1,'wallet:poor','USD','credit',NULL,NULL,2,4,'{"order":"1001"}',1760000000000,1);
CREATE TABLE account_names (
    tenant  INTEGER NOT NULL,
    code    TEXT    NOT NULL,
    account INTEGER NOT NULL,
    PRIMARY KEY (tenant, code)
) STRICT, WITHOUT ROWID;
INSERT INTO account_names VALUES(1,'wallet:poor',502);
INSERT INTO account_names VALUES(1,'wallet:rich',501);
CREATE TABLE assets (
    tenant     INTEGER NOT NULL,
    code       TEXT    NOT NULL,
    exponent   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, code)
) STRICT, WITHOUT ROWID;
INSERT INTO assets VALUES(1,'POINTS',9,1760000000000);
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
INSERT INTO balances VALUES(501,0,680,40,0,-60,1000000,3);
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
INSERT INTO journal_transactions VALUES(601,1,2,1760000000000,'transfer',NULL,'{"order":"1001"}',2);
INSERT INTO journal_transactions VALUES(602,1,2,1760000000000,'reversal',601,'{"order":"1001"}',2);
INSERT INTO journal_transactions VALUES(603,1,2,1760000000000,'held',603,'{"order":"1001"}',2);
INSERT INTO journal_transactions VALUES(604,1,2,1760000000000,'held',604,'{"order":"1001"}',2);
INSERT INTO journal_transactions VALUES(605,1,3,1760000000000,'hold_posted',604,'{"order":"1001"}',4);
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
INSERT INTO journal_entries VALUES(601,0,502,'debit','posted',700,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(601,1,501,'credit','posted',700,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(602,0,502,'credit','posted',700,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(602,1,501,'debit','posted',700,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(603,0,501,'debit','pending',40,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(603,1,502,'credit','pending',40,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(604,0,501,'debit','pending',30,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(604,1,502,'credit','pending',30,'USD',2,1760000000000);
INSERT INTO journal_entries VALUES(605,0,501,'debit','released',30,'USD',3,1760000000000);
INSERT INTO journal_entries VALUES(605,1,502,'credit','released',30,'USD',3,1760000000000);
INSERT INTO journal_entries VALUES(605,2,501,'debit','posted',20,'USD',3,1760000000000);
INSERT INTO journal_entries VALUES(605,3,502,'credit','posted',20,'USD',3,1760000000000);
CREATE TABLE reversals (
    original  INTEGER PRIMARY KEY,
    undone_by INTEGER NOT NULL
) STRICT;
INSERT INTO reversals VALUES(601,602);
CREATE TABLE holds (
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    from_account  INTEGER NOT NULL,
    to_account    INTEGER NOT NULL,
    amount        INTEGER NOT NULL CHECK (amount > 0),
    asset         TEXT    NOT NULL,
    expires_at    INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    posted_amount INTEGER,
    ended_by      INTEGER,
    metadata      TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT;
INSERT INTO holds VALUES(603,1,501,502,40,'USD',1760000060000,'pending',NULL,NULL,'{"order":"1001"}',1760000000000,1);
INSERT INTO holds VALUES(604,1,501,502,30,'USD',1760000060000,'posted',20,605,'{"order":"1001"}',1760000000000,2);
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
INSERT INTO snapshots VALUES(501,2,1760000000000,X'7fffffffffffffffffffffffffffffff',X'80000000000000000000000000000000',X'ffffffffffffffffffffffffffffffff',X'00000000000000000000000000000001',7);
CREATE TABLE cursors (
    reader   TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO cursors VALUES('projection',2,1760000000000,1);
CREATE UNIQUE INDEX claims_by_id ON claims (id);
CREATE INDEX claims_by_sweep ON claims (sweep_at) WHERE sweep_at IS NOT NULL;
CREATE INDEX charges_by_tenant ON charges (tenant);
CREATE INDEX outbox_by_due ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (parked) WHERE parked IS NOT NULL;
CREATE UNIQUE INDEX commits_by_set ON commits (set_id);
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
CREATE TRIGGER charges_are_kept BEFORE DELETE ON charges
BEGIN
    SELECT RAISE(FAIL, 'charges are never removed');
END;
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
CREATE INDEX accounts_by_tenant ON accounts (tenant);
CREATE INDEX journal_transactions_by_tenant ON journal_transactions (tenant);
CREATE INDEX journal_by_account ON journal_entries (account, position, transaction_id, leg);
CREATE INDEX holds_by_deadline ON holds (expires_at) WHERE state = 'pending';
CREATE TRIGGER journal_transactions_balance BEFORE INSERT ON journal_transactions
BEGIN
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM journal_transactions WHERE id = NEW.id)
        THEN RAISE(FAIL, 'the journal is append-only')
        -- An id that SQLite is left to choose reads as -1 here: its entries could not be looked at.
        WHEN NEW.id < 0 OR NEW.legs < 2
          OR NEW.legs <> (SELECT count(*) FROM journal_entries WHERE transaction_id = NEW.id)
        THEN RAISE(FAIL, 'a transaction has an id and at least two entries, as many as it says, all written before it')
        WHEN EXISTS (SELECT 1 FROM journal_entries WHERE transaction_id = NEW.id GROUP BY asset, layer
                     HAVING sum(CASE side WHEN 'debit' THEN amount ELSE -amount END) <> 0)
        THEN RAISE(FAIL, 'the debits and credits of a transaction are equal in every asset and layer')
    END;
END
;
CREATE TRIGGER journal_transactions_are_not_rewritten BEFORE UPDATE ON journal_transactions
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_transactions_are_kept BEFORE DELETE ON journal_transactions
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
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
CREATE TRIGGER charges_keep_their_order
BEFORE UPDATE OF id, tenant, amount_minor, asset, payment_method, capture, destination, description, metadata ON charges
BEGIN
    SELECT RAISE(FAIL, 'what a charge was ordered for never changes');
END;
COMMIT;
PRAGMA application_id = 1131374191;
PRAGMA user_version = 2;
