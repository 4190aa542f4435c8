-- Format 4: payouts; work is for a charge or for a payout. And a redo log stands before the database: the number keeps
-- releases out that would not look for it.

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

-- The triggers and indexes go with the table they are on.
ALTER TABLE outbox RENAME TO outbox_3;
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY,
    charge        INTEGER,
    payout        INTEGER CHECK ((payout IS NULL) <> (charge IS NULL)),
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
INSERT INTO outbox
SELECT id, charge, NULL, flow, version, step, way, hold, claim, tenant, profile, endpoint, due_at, created_at, generation,
       idle_calls, unknown, server_errors, first_sent_at, last_sent_at, parked, revision
FROM outbox_3 ORDER BY id;
DROP TABLE outbox_3;
CREATE INDEX outbox_by_due ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (tenant) WHERE parked IS NOT NULL;

-- What holds against raw SQL too.

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
