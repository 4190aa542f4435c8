-- Captures, voids and refunds; work that is a saga. It only adds: servers of schema 3 go on with the charges they know.
-- They are told by the columns they write: each of their updates names charges.provider or outbox.profile, which later
-- servers never write again. Where they know too little to be right, they are refused. What was captured before is
-- filled in by the next step, which holds no lock on the table; so are new constraints made valid there.

ALTER TABLE charges
    ADD COLUMN captured       BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN refunded       BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN refunding      BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN working        BIGINT,
    -- Older servers know only the provider's name.
    ADD COLUMN endpoint       TEXT NOT NULL DEFAULT '',
    ADD COLUMN wallet_account BIGINT,
    ADD COLUMN wallet_amount  BIGINT,
    DROP CONSTRAINT charges_status_check,
    ADD CONSTRAINT charges_status_check CHECK (status IN ('processing', 'requires_capture', 'succeeded', 'failed',
        'voided', 'refunded', 'partially_refunded', 'parked')) NOT VALID,
    ADD CONSTRAINT given_back_is_not_more_than_taken
        CHECK (captured >= 0 AND refunded >= 0 AND refunding >= 0 AND refunded <= captured - refunding) NOT VALID,
    ADD CONSTRAINT a_wallet_pays_a_part
        CHECK (CASE num_nonnulls(wallet_account, wallet_amount)
            WHEN 0 THEN TRUE
            WHEN 2 THEN wallet_amount > 0 AND wallet_amount < amount_minor
            ELSE FALSE
        END) NOT VALID;

CREATE TABLE operations (
    id                 BIGINT PRIMARY KEY,
    tenant             BIGINT NOT NULL,
    charge             BIGINT NOT NULL,
    kind               TEXT   NOT NULL CHECK (kind IN ('capture', 'void', 'refund')),
    amount_minor       BIGINT NOT NULL CHECK (amount_minor > 0),
    asset              TEXT   NOT NULL,
    status             TEXT   NOT NULL CHECK (status IN ('processing', 'succeeded', 'failed', 'parked')),
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         BIGINT NOT NULL,
    revision           BIGINT NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 85);
CREATE INDEX operations_by_charge ON operations (charge, id);
CREATE INDEX refunds_by_tenant ON operations (tenant, id) WHERE kind = 'refund';

-- Work is known by what its claim makes: the charge itself, or an operation on it.
ALTER TABLE outbox
    ADD COLUMN id      BIGINT,
    ADD COLUMN flow    TEXT,
    ADD COLUMN version BIGINT NOT NULL DEFAULT 1 CHECK (version > 0),
    ADD COLUMN step    BIGINT NOT NULL DEFAULT 0 CHECK (step >= 0),
    ADD COLUMN way     TEXT   NOT NULL DEFAULT 'forward' CHECK (way IN ('forward', 'back')),
    ADD COLUMN hold    BIGINT;
UPDATE outbox SET id = charge, flow = CASE
    WHEN EXISTS (SELECT 1 FROM charges WHERE charges.id = outbox.charge AND NOT charges.capture) THEN 'authorize'
    ELSE 'charge'
END;
ALTER TABLE outbox
    ALTER COLUMN flow SET NOT NULL,
    ADD CHECK (flow IN ('charge', 'authorize', 'split', 'capture', 'void', 'refund')),
    DROP CONSTRAINT outbox_pkey,
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
-- Older servers ask by charge.
CREATE INDEX outbox_by_charge ON outbox (charge);
DROP INDEX outbox_by_due;
CREATE INDEX outbox_by_due ON outbox (due_at, id) WHERE parked IS NULL;
DROP INDEX outbox_parked;
CREATE INDEX outbox_parked ON outbox (tenant, id) WHERE parked IS NOT NULL;

-- What an older server leaves out. Its charge was written before its work, in the same transaction.
CREATE FUNCTION work_of_an_older_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := NEW.charge;
    NEW.flow := CASE
        WHEN EXISTS (SELECT 1 FROM counterfoil.charges WHERE id = NEW.charge AND NOT capture) THEN 'authorize'
        ELSE 'charge'
    END;
    RETURN NEW;
END $$;
CREATE TRIGGER filled_in BEFORE INSERT ON outbox FOR EACH ROW WHEN (NEW.id IS NULL)
EXECUTE FUNCTION work_of_an_older_server();
ALTER TABLE outbox ENABLE ALWAYS TRIGGER filled_in;

CREATE FUNCTION success_of_an_older_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.captured := NEW.amount_minor;
    RETURN NEW;
END $$;
CREATE TRIGGER filled_in BEFORE UPDATE OF provider ON charges FOR EACH ROW
WHEN (NEW.status = 'succeeded' AND OLD.status IN ('processing', 'parked') AND NEW.captured = 0)
EXECUTE FUNCTION success_of_an_older_server();
ALTER TABLE charges ENABLE ALWAYS TRIGGER filled_in;

-- An older server takes work over by an update, and calls the provider after it: so it calls for nothing it does not know.
CREATE TRIGGER unknown_to_older_servers BEFORE UPDATE OF profile ON outbox FOR EACH ROW
WHEN (OLD.id <> OLD.charge OR OLD.flow NOT IN ('charge', 'authorize') OR OLD.version <> 1 OR OLD.step <> 0
   OR OLD.way <> 'forward' OR OLD.hold IS NOT NULL)
EXECUTE FUNCTION refuse('only a newer server knows this work, and will do it');
ALTER TABLE outbox ENABLE ALWAYS TRIGGER unknown_to_older_servers;

CREATE TRIGGER unknown_to_older_servers BEFORE UPDATE OF provider ON charges FOR EACH ROW
WHEN (OLD.wallet_account IS NOT NULL OR OLD.working IS NOT NULL OR OLD.captured > 0)
EXECUTE FUNCTION refuse('only a newer server knows this charge, and will see to it');
ALTER TABLE charges ENABLE ALWAYS TRIGGER unknown_to_older_servers;

-- The rules of what is new. As before, a legal update pays next to nothing for them.

DROP TRIGGER only_forward ON charges;
CREATE TRIGGER only_forward BEFORE UPDATE ON charges FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR (NEW.id, NEW.tenant, NEW.amount_minor, NEW.asset, NEW.payment_method, NEW.capture, NEW.destination,
       NEW.wallet_account, NEW.wallet_amount, NEW.description, NEW.metadata, NEW.provider, NEW.endpoint)
      IS DISTINCT FROM
      (OLD.id, OLD.tenant, OLD.amount_minor, OLD.asset, OLD.payment_method, OLD.capture, OLD.destination,
       OLD.wallet_account, OLD.wallet_amount, OLD.description, OLD.metadata, OLD.provider, OLD.endpoint))
EXECUTE FUNCTION refuse('what a charge was ordered for and its provider never change, and its revision grows');
ALTER TABLE charges ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER stays_settled BEFORE UPDATE ON charges FOR EACH ROW
WHEN (NEW.captured < OLD.captured OR NEW.refunded < OLD.refunded
   OR CASE OLD.status
        WHEN 'requires_capture'   THEN NEW.status NOT IN ('requires_capture', 'succeeded', 'voided', 'parked')
        WHEN 'succeeded'          THEN NEW.status NOT IN ('succeeded', 'partially_refunded', 'refunded')
        WHEN 'partially_refunded' THEN NEW.status NOT IN ('partially_refunded', 'refunded')
        WHEN 'processing'         THEN FALSE
        WHEN 'parked'             THEN FALSE
        ELSE NEW.status <> OLD.status
      END)
EXECUTE FUNCTION refuse('a settled charge stays settled, and what was taken or given back never becomes less');
ALTER TABLE charges ENABLE ALWAYS TRIGGER stays_settled;

CREATE TRIGGER only_forward BEFORE UPDATE ON outbox FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR (NEW.id, NEW.charge, NEW.profile, NEW.endpoint, NEW.flow, NEW.version)
      IS DISTINCT FROM (OLD.id, OLD.charge, OLD.profile, OLD.endpoint, OLD.flow, OLD.version)
   OR (NEW.generation < OLD.generation AND NEW.step = OLD.step AND NEW.way = OLD.way))
EXECUTE FUNCTION refuse('work keeps its charge, its provider and its saga, and a key that was given up for a step does not come back');
ALTER TABLE outbox ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON operations
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('its rows are never removed');
ALTER TABLE operations ENABLE ALWAYS TRIGGER kept;

CREATE TRIGGER only_forward BEFORE UPDATE ON operations FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR OLD.status IN ('succeeded', 'failed')
   OR (NEW.id, NEW.tenant, NEW.charge, NEW.kind, NEW.amount_minor, NEW.asset, NEW.created_at)
      IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.charge, OLD.kind, OLD.amount_minor, OLD.asset, OLD.created_at))
EXECUTE FUNCTION refuse('an operation ends once, and what was asked of it never changes');
ALTER TABLE operations ENABLE ALWAYS TRIGGER only_forward;

-- The wall between tenants, where there are the roles for it.
DO $$
BEGIN
    IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('counterfoil_writer', 'counterfoil_reader')) < 2 THEN
        RETURN;
    END IF;
    GRANT SELECT, INSERT, UPDATE ON operations TO counterfoil_writer;
    GRANT SELECT ON operations TO counterfoil_reader;
    ALTER TABLE operations ENABLE ROW LEVEL SECURITY;
    CREATE POLICY of_the_tenant ON operations FOR SELECT TO counterfoil_reader USING (tenant = chosen_tenant());
    CREATE POLICY all_rows ON operations TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE);
END $$;
