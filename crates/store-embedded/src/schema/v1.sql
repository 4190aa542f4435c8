-- Format 1. Every table is STRICT; times are milliseconds since the Unix epoch on the store's clock.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

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
) STRICT;
CREATE UNIQUE INDEX claims_by_id ON claims (id);
CREATE INDEX claims_by_sweep ON claims (sweep_at) WHERE sweep_at IS NOT NULL;

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
CREATE INDEX charges_by_tenant ON charges (tenant);

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
CREATE INDEX outbox_by_due ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (parked) WHERE parked IS NOT NULL;

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
    main_account INTEGER NOT NULL,
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
CREATE UNIQUE INDEX commits_by_set ON commits (set_id);

-- What holds against raw SQL too. FAIL stops the statement at the first row that breaks a rule.

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
CREATE TRIGGER charges_keep_their_order
BEFORE UPDATE OF id, tenant, amount_minor, asset, payment_method, capture, destination, description, metadata ON charges
BEGIN
    SELECT RAISE(FAIL, 'what a charge was ordered for never changes');
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
