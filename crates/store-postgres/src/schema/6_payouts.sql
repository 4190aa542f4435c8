-- Payouts. It only adds: servers of schemas 3 and 5 go on with the charges they know. Work for a payout names no charge,
-- so they cannot read it; where it is overdue, their recovery waits until a newer server has taken it up.

CREATE TABLE payouts (
    id                 BIGINT PRIMARY KEY,
    tenant             BIGINT NOT NULL,
    amount_minor       BIGINT NOT NULL CHECK (amount_minor > 0),
    asset              TEXT   NOT NULL,
    account            BIGINT NOT NULL,
    destination        TEXT,
    description        TEXT,
    metadata           JSONB  NOT NULL,
    status             TEXT   NOT NULL CHECK (status IN ('processing', 'paid', 'failed', 'parked')),
    provider           TEXT   NOT NULL,
    endpoint           TEXT   NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         BIGINT NOT NULL,
    revision           BIGINT NOT NULL CHECK (revision >= 0)
) WITH (fillfactor = 85);
CREATE INDEX payouts_by_tenant ON payouts (tenant, id);

ALTER TABLE outbox
    ADD COLUMN payout BIGINT,
    ALTER COLUMN charge DROP NOT NULL,
    ADD CONSTRAINT work_is_for_one_payment CHECK (num_nonnulls(charge, payout) = 1),
    DROP CONSTRAINT outbox_flow_check,
    ADD CONSTRAINT outbox_flow_check
        CHECK (flow IN ('charge', 'authorize', 'split', 'capture', 'void', 'refund', 'payout'));

-- The rules of what is new.

DROP TRIGGER only_forward ON outbox;
CREATE TRIGGER only_forward BEFORE UPDATE ON outbox FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR (NEW.id, NEW.charge, NEW.payout, NEW.profile, NEW.endpoint, NEW.flow, NEW.version)
      IS DISTINCT FROM (OLD.id, OLD.charge, OLD.payout, OLD.profile, OLD.endpoint, OLD.flow, OLD.version)
   OR (NEW.generation < OLD.generation AND NEW.step = OLD.step AND NEW.way = OLD.way))
EXECUTE FUNCTION refuse('work keeps its payment, its provider and its saga, and a key that was given up for a step does not come back');
ALTER TABLE outbox ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON payouts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('its rows are never removed');
ALTER TABLE payouts ENABLE ALWAYS TRIGGER kept;

CREATE TRIGGER only_forward BEFORE UPDATE ON payouts FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR OLD.status IN ('paid', 'failed')
   OR (NEW.id, NEW.tenant, NEW.amount_minor, NEW.asset, NEW.account, NEW.destination, NEW.description, NEW.metadata,
       NEW.provider, NEW.endpoint, NEW.created_at)
      IS DISTINCT FROM
      (OLD.id, OLD.tenant, OLD.amount_minor, OLD.asset, OLD.account, OLD.destination, OLD.description, OLD.metadata,
       OLD.provider, OLD.endpoint, OLD.created_at))
EXECUTE FUNCTION refuse('a payout ends once, and what was asked of it never changes');
ALTER TABLE payouts ENABLE ALWAYS TRIGGER only_forward;

-- The wall between tenants, where there are the roles for it.
DO $$
BEGIN
    IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('counterfoil_writer', 'counterfoil_reader')) < 2 THEN
        RETURN;
    END IF;
    GRANT SELECT, INSERT, UPDATE ON payouts TO counterfoil_writer;
    GRANT SELECT ON payouts TO counterfoil_reader;
    ALTER TABLE payouts ENABLE ROW LEVEL SECURITY;
    CREATE POLICY of_the_tenant ON payouts FOR SELECT TO counterfoil_reader USING (tenant = chosen_tenant());
    CREATE POLICY all_rows ON payouts TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE);
END $$;
