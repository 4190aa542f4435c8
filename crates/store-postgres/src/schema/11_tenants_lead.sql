-- The tenant leads every primary key of what belongs to one; what was there for servers of schemas before 10 is taken away.
-- They ask by id alone, which nothing serves any more. The new keys are there already: this only names them, and holds the
-- tables for a moment.

-- In the order in which servers lock: who is in the middle of a commit ends it first.
LOCK TABLE idempotency_keys, charges, operations, payouts, outbox, audit_log, accounts, balances, journal_transactions,
    reversals, holds, snapshots, head, journal_entries, unproven IN ACCESS EXCLUSIVE MODE;

DO $$
DECLARE
    name TEXT;
BEGIN
    -- The constraint is valid, so nothing is read to know that no row lacks an owner.
    FOREACH name IN ARRAY ARRAY['journal_entries', 'reversals', 'balances', 'snapshots'] LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN tenant SET NOT NULL', name);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT has_an_owner', name);
        EXECUTE format('DROP TRIGGER owner_filled_in ON %I', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['idempotency_keys', 'charges', 'operations', 'payouts', 'outbox', 'audit_log', 'accounts',
                                'balances', 'journal_transactions', 'journal_entries', 'reversals', 'holds', 'snapshots'] LOOP
        EXECUTE format('ALTER TABLE %1$I DROP CONSTRAINT %2$I, ADD CONSTRAINT %2$I PRIMARY KEY USING INDEX %3$I',
            name, name || '_pkey', name || '_of_tenant');
    END LOOP;
END $$;
DROP FUNCTION owned_by_its_account();
DROP FUNCTION owned_by_its_transaction();
DROP FUNCTION owned_by_account_or_transaction();

DROP INDEX journal_entries_by_account, operations_by_charge, idempotency_keys_by_subject;
ALTER INDEX journal_entries_of_account RENAME TO journal_entries_by_account;
ALTER INDEX operations_of_charge RENAME TO operations_by_charge;

-- History takes no change at all again.
DROP TRIGGER owner_stays ON journal_entries;
DROP TRIGGER owner_stays ON reversals;
DROP TRIGGER append_only ON journal_entries;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE journal_entries ENABLE ALWAYS TRIGGER append_only;
DROP TRIGGER append_only ON reversals;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reversals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE reversals ENABLE ALWAYS TRIGGER append_only;

-- The rules of the journal, by tenant and transaction.

ALTER TABLE unproven ADD COLUMN tenant BIGINT NOT NULL;

CREATE OR REPLACE FUNCTION proven_or_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counterfoil.unproven (tenant, transaction)
    SELECT opened.tenant, opened.id
    FROM opened CROSS JOIN LATERAL (
        SELECT count(*) AS entries, sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) AS sum,
               min(asset) = max(asset) AND min(layer) = max(layer) AS alike
        FROM counterfoil.journal_entries WHERE tenant = opened.tenant AND transaction = opened.id
    ) AS found
    WHERE found.entries <> opened.legs
       OR CASE WHEN found.alike THEN found.sum <> 0
               ELSE EXISTS (SELECT 1 FROM counterfoil.journal_entries
                            WHERE tenant = opened.tenant AND transaction = opened.id
                            GROUP BY asset, layer
                            HAVING sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) <> 0)
          END;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION noted_is_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    meant    BIGINT;
    entries  BIGINT;
    balanced BOOLEAN;
BEGIN
    SELECT legs INTO meant FROM counterfoil.journal_transactions WHERE tenant = NEW.tenant AND id = NEW.transaction;
    SELECT coalesce(sum(part.entries), 0), coalesce(bool_and(part.sum = 0), TRUE) INTO entries, balanced
    FROM (SELECT count(*) AS entries, sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) AS sum
          FROM counterfoil.journal_entries WHERE tenant = NEW.tenant AND transaction = NEW.transaction
          GROUP BY asset, layer) AS part;
    IF entries <> meant THEN
        RAISE EXCEPTION 'transaction % says % entries and has %', NEW.transaction, meant, entries USING ERRCODE = 'CF003';
    END IF;
    IF NOT balanced THEN
        RAISE EXCEPTION 'transaction % does not balance', NEW.transaction USING ERRCODE = 'CF003';
    END IF;
    DELETE FROM counterfoil.unproven WHERE tenant = NEW.tenant AND transaction = NEW.transaction;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION entries_have_a_place() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stray BIGINT;
BEGIN
    SELECT added.transaction INTO stray
    FROM added LEFT JOIN counterfoil.journal_transactions AS header
        ON header.tenant = added.tenant AND header.id = added.transaction
    WHERE header.id IS NULL OR added.leg >= header.legs
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'transaction % has no place for an entry: it is sealed, or not there', stray
            USING ERRCODE = 'CF003';
    END IF;
    RETURN NULL;
END $$;

-- Keys never change; who does not set them pays nothing for that.

DROP TRIGGER as_made ON outbox;
CREATE TRIGGER as_made BEFORE UPDATE OF id, tenant, charge, payout, profile, endpoint, flow, version ON outbox FOR EACH ROW
WHEN ((NEW.id, NEW.tenant, NEW.charge, NEW.payout, NEW.profile, NEW.endpoint, NEW.flow, NEW.version)
      IS DISTINCT FROM
      (OLD.id, OLD.tenant, OLD.charge, OLD.payout, OLD.profile, OLD.endpoint, OLD.flow, OLD.version))
EXECUTE FUNCTION refuse('work keeps its payment, its tenant, its provider and its saga');
ALTER TABLE outbox ENABLE ALWAYS TRIGGER as_made;

DROP TRIGGER only_forward ON balances;
CREATE TRIGGER as_made BEFORE UPDATE OF tenant, account, shard ON balances FOR EACH ROW
WHEN ((NEW.tenant, NEW.account, NEW.shard) IS DISTINCT FROM (OLD.tenant, OLD.account, OLD.shard))
EXECUTE FUNCTION refuse('a balance stays its account''s');
ALTER TABLE balances ENABLE ALWAYS TRIGGER as_made;
CREATE TRIGGER only_forward BEFORE UPDATE ON balances FOR EACH ROW WHEN (NEW.revision <= OLD.revision)
EXECUTE FUNCTION refuse('the revision grows with every change of a balance');
ALTER TABLE balances ENABLE ALWAYS TRIGGER only_forward;

-- What was there for servers of schema 3.

DROP TRIGGER filled_in ON outbox;
DROP TRIGGER filled_in ON charges;
DROP TRIGGER unknown_to_older_servers ON outbox;
DROP TRIGGER unknown_to_older_servers ON charges;
DROP FUNCTION work_of_an_older_server();
DROP FUNCTION success_of_an_older_server();

-- The wall between tenants, where there are the roles for it: every row says whose it is.
DO $$
DECLARE
    name TEXT;
BEGIN
    IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('counterfoil_writer', 'counterfoil_reader')) < 2 THEN
        RETURN;
    END IF;
    FOREACH name IN ARRAY ARRAY['journal_entries', 'balances', 'snapshots'] LOOP
        EXECUTE format('DROP POLICY IF EXISTS of_the_tenant ON %I', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['journal_entries', 'balances', 'snapshots', 'reversals'] LOOP
        EXECUTE format('CREATE POLICY of_the_tenant ON %I FOR SELECT TO counterfoil_reader
            USING (tenant = chosen_tenant())', name);
    END LOOP;
    GRANT SELECT ON reversals TO counterfoil_reader;
    ALTER TABLE reversals ENABLE ROW LEVEL SECURITY;
    CREATE POLICY all_rows ON reversals TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE);
END $$;
