-- Format 3: operations on charges, and work as sagas. What was captured before it was captured whole, and work under way
-- is at the first step of its only one.

ALTER TABLE charges ADD COLUMN captured INTEGER NOT NULL DEFAULT 0 CHECK (captured >= 0);
ALTER TABLE charges ADD COLUMN refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded >= 0);
ALTER TABLE charges ADD COLUMN refunding INTEGER NOT NULL DEFAULT 0
    CHECK (refunding >= 0 AND refunded <= captured - refunding);
ALTER TABLE charges ADD COLUMN working INTEGER;
ALTER TABLE charges ADD COLUMN endpoint TEXT NOT NULL DEFAULT '';
ALTER TABLE charges ADD COLUMN wallet_account INTEGER;
ALTER TABLE charges ADD COLUMN wallet_amount INTEGER
    CHECK (CASE WHEN wallet_account IS NULL THEN wallet_amount IS NULL
                ELSE wallet_amount IS NOT NULL AND wallet_amount > 0 AND wallet_amount < amount_minor END);
UPDATE charges SET captured = amount_minor WHERE status = 'succeeded';

ALTER TABLE outbox RENAME TO outbox_2;
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY,
    charge        INTEGER NOT NULL,
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
SELECT charge, charge,
       CASE (SELECT capture FROM charges WHERE id = charge) WHEN 0 THEN 'authorize' ELSE 'charge' END,
       1, 0, 'forward', NULL,
       claim, tenant, profile, endpoint, due_at, created_at, generation, idle_calls, unknown, server_errors,
       first_sent_at, last_sent_at, parked, revision
FROM outbox_2 ORDER BY charge;
DROP TABLE outbox_2;
CREATE INDEX outbox_by_due ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (tenant) WHERE parked IS NOT NULL;

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

-- What holds against raw SQL too.

DROP TRIGGER charges_keep_their_order;
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
CREATE TRIGGER outbox_keeps_its_saga
BEFORE UPDATE OF id, charge, flow, version, profile, endpoint ON outbox
BEGIN
    SELECT RAISE(FAIL, 'the saga and the provider of a payment never change');
END;
CREATE TRIGGER outbox_only_moves_forward BEFORE UPDATE ON outbox
WHEN NEW.revision <= OLD.revision
  OR (NEW.generation < OLD.generation AND NEW.step = OLD.step AND NEW.way = OLD.way)
BEGIN
    SELECT RAISE(FAIL, 'work only moves forward: its revision grows, and a key that was given up for a step does not come back');
END;
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
