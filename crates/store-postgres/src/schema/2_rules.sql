-- What holds against raw SQL too, also for the owner and under session_replication_role = replica (ENABLE ALWAYS).
-- These rules guard against mistakes: who may alter the tables may also drop them.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'CF002';
END $$;

-- History is only added to. One firing per statement, none on INSERT, so the rule costs writers nothing.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['journal_transactions', 'journal_entries', 'audit_log', 'commits',
                                'account_names', 'assets', 'reversals'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse(''it is append-only'')', name);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER append_only', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['charges', 'accounts', 'balances', 'holds', 'tenants', 'api_keys', 'slots',
                                'cursors', 'head', 'meta'] LOOP
        EXECUTE format('CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse(''its rows are never removed'')', name);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER kept', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['idempotency_keys', 'outbox', 'snapshots'] LOOP
        EXECUTE format('CREATE TRIGGER not_emptied BEFORE TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse(''it is never emptied'')', name);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER not_emptied', name);
    END LOOP;
END $$;

-- A transaction is whole and balanced when it commits: it has the number of entries it says, and they sum to zero per
-- asset and layer. The rule hangs on the header, so it fires once per transaction and not once per entry.
CREATE FUNCTION journal_is_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entries  BIGINT;
    balanced BOOLEAN;
BEGIN
    SELECT coalesce(sum(part.entries), 0), coalesce(bool_and(part.sum = 0), TRUE) INTO entries, balanced
    FROM (SELECT count(*) AS entries, sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) AS sum
          FROM counterfoil.journal_entries WHERE transaction = NEW.id GROUP BY asset, layer) AS part;
    IF entries <> NEW.legs THEN
        RAISE EXCEPTION 'transaction % says % entries and has %', NEW.id, NEW.legs, entries USING ERRCODE = 'CF003';
    END IF;
    IF NOT balanced THEN
        RAISE EXCEPTION 'transaction % does not balance', NEW.id USING ERRCODE = 'CF003';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON journal_transactions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION journal_is_balanced();
ALTER TABLE journal_transactions ENABLE ALWAYS TRIGGER balanced;

-- An entry belongs to a transaction that is there, at one of the places it says. A committed transaction has all its
-- places taken, so the primary key refuses a late entry there, and this rule refuses one anywhere else: nothing can be
-- added to it. One firing per statement over all its entries.
CREATE FUNCTION entries_have_a_place() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stray BIGINT;
BEGIN
    SELECT added.transaction INTO stray
    FROM added LEFT JOIN counterfoil.journal_transactions AS header ON header.id = added.transaction
    WHERE header.id IS NULL OR added.leg >= header.legs
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'transaction % has no place for an entry: it is sealed, or not there', stray
            USING ERRCODE = 'CF003';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER in_its_place AFTER INSERT ON journal_entries
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION entries_have_a_place();
ALTER TABLE journal_entries ENABLE ALWAYS TRIGGER in_its_place;

-- The WHEN clauses below are evaluated without a call: a legal update pays next to nothing.

CREATE TRIGGER only_forward BEFORE UPDATE ON idempotency_keys FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR NEW.fence < OLD.fence
   OR NEW.id <> OLD.id
   OR NEW.tenant <> OLD.tenant
   OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
           THEN NOT ((NEW.subject <> OLD.subject AND NEW.fence > OLD.fence)
                  OR (NEW.subject = OLD.subject AND NEW.state = 'expired' AND OLD.state <> 'expired'))
           ELSE NEW.subject <> OLD.subject OR NEW.state = 'expired'
             OR (OLD.state = 'failed_retry' AND NEW.state <> 'in_flight')
             OR (OLD.state = 'uncertain' AND NEW.state IN ('in_flight', 'failed_retry'))
      END)
EXECUTE FUNCTION refuse('a claim only moves forward: fence and revision grow, and a settled claim only expires or is claimed anew under a higher fence');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER kept_while_needed BEFORE DELETE ON idempotency_keys FOR EACH ROW
WHEN (OLD.sweep_at IS NULL)
EXECUTE FUNCTION refuse('a claim that is not settled is never removed');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER kept_while_needed;

CREATE TRIGGER only_forward BEFORE UPDATE ON charges FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR (NEW.id, NEW.tenant, NEW.amount_minor, NEW.asset, NEW.payment_method, NEW.capture, NEW.destination,
       NEW.description, NEW.metadata)
      IS DISTINCT FROM
      (OLD.id, OLD.tenant, OLD.amount_minor, OLD.asset, OLD.payment_method, OLD.capture, OLD.destination,
       OLD.description, OLD.metadata)
   OR (OLD.status IN ('requires_capture', 'succeeded', 'failed') AND NEW.status <> OLD.status))
EXECUTE FUNCTION refuse('what a charge was ordered for never changes, and a settled one stays settled');
ALTER TABLE charges ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER only_forward BEFORE UPDATE ON holds FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR OLD.state <> 'pending'
   OR (NEW.id, NEW.tenant, NEW.from_account, NEW.to_account, NEW.amount, NEW.asset)
      IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.from_account, OLD.to_account, OLD.amount, OLD.asset))
EXECUTE FUNCTION refuse('a hold ends once, and nothing else of it changes');
ALTER TABLE holds ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER only_forward BEFORE UPDATE ON balances FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR (NEW.account, NEW.shard) IS DISTINCT FROM (OLD.account, OLD.shard))
EXECUTE FUNCTION refuse('the revision grows with every change of a balance');
ALTER TABLE balances ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER only_forward BEFORE UPDATE ON api_keys FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR NEW.tenant <> OLD.tenant
   OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at))
EXECUTE FUNCTION refuse('a key keeps its tenant, and a revoked one stays revoked');
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER only_forward BEFORE UPDATE ON slots FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR NEW.epoch < OLD.epoch OR NEW.number <> OLD.number)
EXECUTE FUNCTION refuse('the epoch of a slot never falls');
ALTER TABLE slots ENABLE ALWAYS TRIGGER only_forward;

CREATE TRIGGER only_forward BEFORE UPDATE ON head FOR EACH ROW
WHEN (NEW.position < OLD.position OR NEW.at < OLD.at)
EXECUTE FUNCTION refuse('positions and the store''s time never go back');
ALTER TABLE head ENABLE ALWAYS TRIGGER only_forward;
