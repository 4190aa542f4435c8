-- Functions and triggers that hold invariants against raw SQL.
--
-- Every trigger is ENABLE ALWAYS (see the end of this file), so it also fires for the owner of the
-- tables and under session_replication_role = replica. The rules guard against mistakes, not
-- against a hostile owner, who may drop them.
--
-- Cost: PostgreSQL plans the WHEN clause of a trigger for every statement, so the longer rules have
-- a short WHEN clause that lets nearly every legal update pass, and ask the whole rule in a
-- function. A trigger on named columns costs nothing to statements that do not set those columns.

-- The server's clock in milliseconds, rounded down.
CREATE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT;

-- The store's time plus a minute. The store's time is the server's clock, or the time of the last
-- commit if that is later. A process may run slightly ahead of both, so deadlines within the next
-- minute count as passed.
CREATE FUNCTION latest_store_time() RETURNS BIGINT LANGUAGE sql VOLATILE
    RETURN greatest(now_ms(), (SELECT at FROM head WHERE one)) + 60000;

-- Aborts the transaction of a statement that wrote fewer rows than it was meant to.
CREATE FUNCTION require_row_count(written BIGINT, expected BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF written <> expected THEN
        RAISE EXCEPTION 'a statement wrote % of % rows', written, expected USING ERRCODE = 'CF001';
    END IF;
    RETURN TRUE;
END $$;

-- Refuses the statement or the row; the argument of the trigger says why.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'CF002';
END $$;

-- Append-only tables, tables without deletions, and tables that are never truncated. Statement
-- triggers fire once per statement and not at all on INSERT.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['journal_transactions', 'journal_entries', 'audit_log', 'commit_groups',
                                'account_names', 'assets', 'reversals'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse(''it is append-only'')', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['charges', 'operations', 'payouts', 'accounts', 'balances', 'holds', 'tenants',
                                'api_keys', 'slots', 'cursors', 'head', 'meta'] LOOP
        EXECUTE format('CREATE TRIGGER never_removed BEFORE DELETE OR TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse(''its rows are never removed'')', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['claims', 'outbox', 'snapshots'] LOOP
        EXECUTE format('CREATE TRIGGER never_emptied BEFORE TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse(''it is never emptied'')', name);
    END LOOP;
END $$;

-- The journal.
--
-- A transaction has as many entries as its header says, and they sum to zero per asset and layer.
-- The check runs once per statement over all transactions that the statement inserted. A balanced
-- transaction is sealed: entries can be neither added nor removed. Unbalanced ones are noted and
-- checked again when the database transaction commits, because further entries may come in later
-- statements.

CREATE FUNCTION check_balance_or_defer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counterfoil.unbalanced_transactions (tenant, transaction)
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
CREATE TRIGGER balanced AFTER INSERT ON journal_transactions
    REFERENCING NEW TABLE AS opened FOR EACH STATEMENT EXECUTE FUNCTION check_balance_or_defer();

-- The event is queued when the note is inserted. Deleting or changing the note does not cancel it.
CREATE FUNCTION check_deferred_balance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    expected BIGINT;
    entries  BIGINT;
    balanced BOOLEAN;
BEGIN
    SELECT legs INTO expected FROM counterfoil.journal_transactions WHERE tenant = NEW.tenant AND id = NEW.transaction;
    SELECT coalesce(sum(part.entries), 0), coalesce(bool_and(part.sum = 0), TRUE) INTO entries, balanced
    FROM (SELECT count(*) AS entries, sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) AS sum
          FROM counterfoil.journal_entries WHERE tenant = NEW.tenant AND transaction = NEW.transaction
          GROUP BY asset, layer) AS part;
    IF entries <> expected THEN
        RAISE EXCEPTION 'transaction % says % entries and has %', NEW.transaction, expected, entries
            USING ERRCODE = 'CF003';
    END IF;
    IF NOT balanced THEN
        RAISE EXCEPTION 'transaction % does not balance', NEW.transaction USING ERRCODE = 'CF003';
    END IF;
    DELETE FROM counterfoil.unbalanced_transactions WHERE tenant = NEW.tenant AND transaction = NEW.transaction;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON unbalanced_transactions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_deferred_balance();

-- An entry belongs to an existing transaction, at a place announced by the header. All places of a
-- committed transaction are taken: the primary key refuses a late entry there, and this rule
-- refuses one elsewhere.
CREATE FUNCTION check_entry_places() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER in_its_place AFTER INSERT ON journal_entries
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_entry_places();

-- Partitions.
--
-- Statement triggers of a partitioned table do not fire for statements that name a partition. So
-- each partition has the triggers of its table. It also has row-level security without a policy:
-- the roles reach its rows only through the table.

CREATE FUNCTION guard_partition(parent REGCLASS, partition REGCLASS) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    rule RECORD;
BEGIN
    FOR rule IN SELECT tgname, pg_get_triggerdef(oid) AS definition
                FROM pg_trigger WHERE tgrelid = parent AND NOT tgisinternal LOOP
        EXECUTE replace(rule.definition,
            format(' ON counterfoil.%s ', parent), format(' ON counterfoil.%s ', partition));
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', partition, rule.tgname);
    END LOOP;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', partition);
END $$;

SELECT guard_partition('journal_transactions', 'journal_transactions_initial'),
       guard_partition('journal_entries', 'journal_entries_initial'),
       guard_partition('audit_log', 'audit_log_initial');

-- Starts new partitions of the journal and the audit log on a day (midnight UTC). The last
-- partition of each table ends there, and a new one without an end follows. PostgreSQL reads the
-- last partition to verify that no row is beyond the new end, and commits wait for that. Call this
-- ahead of time, while the last partition is empty: then it takes milliseconds. It waits at most a
-- second for tables in use; then it fails and can be called again.
CREATE FUNCTION start_partition(day DATE) RETURNS VOID LANGUAGE plpgsql
    SET search_path = counterfoil, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    ms     BIGINT := extract(epoch FROM day)::BIGINT * 1000;
    -- The first id of the day (41 bits of milliseconds since 2025-01-01, then 22 bits), and its
    -- first ULID (48 bits of milliseconds, then 80 bits).
    id     TEXT := ((ms - 1735689600000) << 22)::TEXT;
    ulid   TEXT := (decode(lpad(to_hex(ms), 12, '0'), 'hex') || decode(repeat('00', 10), 'hex'))::TEXT;
    part   RECORD;
    bounds TEXT;
    next   TEXT;
BEGIN
    IF day <= (now() AT TIME ZONE 'UTC')::DATE THEN
        RAISE EXCEPTION 'a partition starts on a day in the future, and % is none', day;
    END IF;
    -- In the order in which commits lock these tables.
    LOCK TABLE audit_log, journal_transactions, journal_entries IN ACCESS EXCLUSIVE MODE;
    FOR part IN SELECT i.inhparent::REGCLASS AS parent, c.oid::REGCLASS AS last, pg_get_expr(c.relpartbound, c.oid) AS bounds,
                       CASE WHEN i.inhparent = 'audit_log'::REGCLASS THEN ulid ELSE id END AS first
                FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
                WHERE i.inhparent IN ('audit_log'::REGCLASS, 'journal_transactions'::REGCLASS, 'journal_entries'::REGCLASS)
                  AND c.relkind = 'r' AND pg_get_expr(c.relpartbound, c.oid) LIKE '% TO (MAXVALUE)' LOOP
        bounds := replace(part.bounds, 'TO (MAXVALUE)', format('TO (%L)', part.first));
        next := format('%s_from_%s', part.parent, to_char(day, 'YYYYMMDD'));
        EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', part.parent, part.last);
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s %s', part.parent, part.last, bounds);
        EXECUTE format('CREATE TABLE %I PARTITION OF %s FOR VALUES FROM (%L) TO (MAXVALUE)
            WITH (autovacuum_vacuum_insert_scale_factor = 0.1)', next, part.parent, part.first);
        PERFORM guard_partition(part.parent, next::REGCLASS);
    END LOOP;
END $$;

-- Claims.

CREATE TRIGGER as_made BEFORE UPDATE OF tenant, id ON claims FOR EACH ROW
WHEN (NEW.id <> OLD.id OR NEW.tenant <> OLD.tenant)
EXECUTE FUNCTION refuse('a claim only moves forward, and keeps its key and its tenant');

CREATE FUNCTION check_claim_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The parentheses keep the THENs inside from ending the condition.
    IF (NEW.revision <= OLD.revision
        OR NEW.fence < OLD.fence
        OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
                THEN NOT (CASE WHEN NEW.subject = OLD.subject THEN NEW.state = 'expired' AND OLD.state <> 'expired'
                               ELSE NEW.fence > OLD.fence AND OLD.tombstone_until <= counterfoil.latest_store_time() END)
                ELSE NEW.subject <> OLD.subject OR NEW.state = 'expired'
                  OR (OLD.state = 'failed_retry' AND NEW.state <> 'in_flight')
                  OR (OLD.state = 'uncertain' AND NEW.state IN ('in_flight', 'failed_retry'))
           END) THEN
        RAISE EXCEPTION '%: a claim only moves forward: fence and revision grow, and a settled claim only expires or, after its tombstone, is claimed again under a higher fence',
            TG_TABLE_NAME USING ERRCODE = 'CF002';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER only_forward BEFORE UPDATE ON claims FOR EACH ROW
WHEN (OLD.state <> 'in_flight' OR NEW.state = 'expired' OR NEW.subject <> OLD.subject
   OR NEW.fence < OLD.fence OR NEW.revision <= OLD.revision)
EXECUTE FUNCTION check_claim_moves_forward();

CREATE TRIGGER kept_while_unsettled BEFORE DELETE ON claims FOR EACH ROW
WHEN (OLD.state = ANY ('{in_flight,failed_retry,uncertain}') OR OLD.sweep_at IS NULL)
EXECUTE FUNCTION refuse('a claim that is not settled is never removed');

CREATE FUNCTION check_tombstone_is_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.tombstone_until > counterfoil.latest_store_time() THEN
        RAISE EXCEPTION '%: a settled claim is kept until its tombstone ends', TG_TABLE_NAME USING ERRCODE = 'CF002';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER kept_until_its_tombstone_ends BEFORE DELETE ON claims FOR EACH ROW
WHEN (OLD.tombstone_until > now_ms())
EXECUTE FUNCTION check_tombstone_is_over();

-- Payments and the work for them.

CREATE TRIGGER as_made BEFORE UPDATE OF tenant, id, amount_minor, asset, payment_method, capture, destination,
    wallet_account, wallet_amount, description, metadata, provider, endpoint ON charges FOR EACH ROW
WHEN ((NEW.tenant, NEW.id, NEW.amount_minor, NEW.asset, NEW.payment_method, NEW.capture, NEW.destination,
       NEW.wallet_account, NEW.wallet_amount, NEW.description, NEW.metadata, NEW.provider, NEW.endpoint)
      IS DISTINCT FROM
      (OLD.tenant, OLD.id, OLD.amount_minor, OLD.asset, OLD.payment_method, OLD.capture, OLD.destination,
       OLD.wallet_account, OLD.wallet_amount, OLD.description, OLD.metadata, OLD.provider, OLD.endpoint))
EXECUTE FUNCTION refuse('what a charge was ordered for and its provider never change');

CREATE FUNCTION check_charge_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.revision <= OLD.revision OR NEW.captured < OLD.captured OR NEW.refunded < OLD.refunded
        OR CASE OLD.status
             WHEN 'processing'         THEN FALSE
             WHEN 'parked'             THEN FALSE
             WHEN NEW.status           THEN FALSE
             WHEN 'requires_capture'   THEN NEW.status NOT IN ('succeeded', 'voided', 'parked')
             WHEN 'succeeded'          THEN NEW.status NOT IN ('partially_refunded', 'refunded')
             WHEN 'partially_refunded' THEN NEW.status <> 'refunded'
             ELSE TRUE
           END) THEN
        RAISE EXCEPTION '%: its revision grows, a settled charge stays settled, and what was taken or given back never becomes less',
            TG_TABLE_NAME USING ERRCODE = 'CF002';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER only_forward BEFORE UPDATE ON charges FOR EACH ROW
WHEN (OLD.status <> 'processing' OR NEW.captured < OLD.captured OR NEW.refunded < OLD.refunded
   OR NEW.revision <= OLD.revision)
EXECUTE FUNCTION check_charge_moves_forward();

CREATE TRIGGER only_forward BEFORE UPDATE ON operations FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR OLD.status IN ('succeeded', 'failed')
   OR (NEW.tenant, NEW.id, NEW.charge, NEW.kind, NEW.amount_minor, NEW.asset, NEW.created_at)
      IS DISTINCT FROM (OLD.tenant, OLD.id, OLD.charge, OLD.kind, OLD.amount_minor, OLD.asset, OLD.created_at))
EXECUTE FUNCTION refuse('an operation ends once, and what was asked of it never changes');

CREATE TRIGGER only_forward BEFORE UPDATE ON payouts FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR OLD.status IN ('paid', 'failed')
   OR (NEW.tenant, NEW.id, NEW.amount_minor, NEW.asset, NEW.account, NEW.destination, NEW.description, NEW.metadata,
       NEW.provider, NEW.endpoint, NEW.created_at)
      IS DISTINCT FROM
      (OLD.tenant, OLD.id, OLD.amount_minor, OLD.asset, OLD.account, OLD.destination, OLD.description, OLD.metadata,
       OLD.provider, OLD.endpoint, OLD.created_at))
EXECUTE FUNCTION refuse('a payout ends once, and what was asked of it never changes');

CREATE TRIGGER as_made BEFORE UPDATE OF tenant, id, charge, payout, profile, endpoint, flow, version ON outbox FOR EACH ROW
WHEN ((NEW.tenant, NEW.id, NEW.charge, NEW.payout, NEW.profile, NEW.endpoint, NEW.flow, NEW.version)
      IS DISTINCT FROM
      (OLD.tenant, OLD.id, OLD.charge, OLD.payout, OLD.profile, OLD.endpoint, OLD.flow, OLD.version))
EXECUTE FUNCTION refuse('work keeps its payment, its tenant, its provider and its saga');

CREATE TRIGGER only_forward BEFORE UPDATE ON outbox FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR (NEW.generation < OLD.generation AND NEW.step = OLD.step AND NEW.way = OLD.way))
EXECUTE FUNCTION refuse('work keeps its payment, its revision grows, and a key that was given up for a step does not come back');

-- The ledger's other rows.

CREATE TRIGGER as_made BEFORE UPDATE OF tenant, id, code, asset, normal, floor, cap, metadata, created_at ON accounts
FOR EACH ROW
WHEN ((NEW.tenant, NEW.id, NEW.code, NEW.asset, NEW.normal, NEW.floor, NEW.cap, NEW.metadata, NEW.created_at)
      IS DISTINCT FROM
      (OLD.tenant, OLD.id, OLD.code, OLD.asset, OLD.normal, OLD.floor, OLD.cap, OLD.metadata, OLD.created_at))
EXECUTE FUNCTION refuse('an account stays its tenant''s, as it was opened');

CREATE TRIGGER as_made BEFORE UPDATE OF tenant, account, shard ON balances FOR EACH ROW
WHEN ((NEW.tenant, NEW.account, NEW.shard) IS DISTINCT FROM (OLD.tenant, OLD.account, OLD.shard))
EXECUTE FUNCTION refuse('a balance stays its account''s');

CREATE TRIGGER as_made BEFORE UPDATE OF expires_at, metadata, created_at ON holds FOR EACH ROW
WHEN ((NEW.expires_at, NEW.metadata, NEW.created_at) IS DISTINCT FROM (OLD.expires_at, OLD.metadata, OLD.created_at))
EXECUTE FUNCTION refuse('a hold ends once, and nothing else of it changes');

CREATE TRIGGER only_forward BEFORE UPDATE ON holds FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR OLD.state <> 'pending'
   OR (NEW.tenant, NEW.id, NEW.from_account, NEW.to_account, NEW.amount, NEW.asset)
      IS DISTINCT FROM (OLD.tenant, OLD.id, OLD.from_account, OLD.to_account, OLD.amount, OLD.asset))
EXECUTE FUNCTION refuse('a hold ends once, and nothing else of it changes');

CREATE TRIGGER as_made BEFORE UPDATE OF tenant, account, position ON snapshots FOR EACH ROW
WHEN ((NEW.tenant, NEW.account, NEW.position) IS DISTINCT FROM (OLD.tenant, OLD.account, OLD.position))
EXECUTE FUNCTION refuse('a snapshot stays its account''s, at its position');

CREATE TRIGGER as_made BEFORE UPDATE OF reader ON cursors FOR EACH ROW
WHEN (NEW.reader <> OLD.reader)
EXECUTE FUNCTION refuse('a cursor stays its reader''s');

-- Tenants and processes.

CREATE TRIGGER as_made BEFORE UPDATE OF name, id, created_at ON tenants FOR EACH ROW
WHEN ((NEW.name, NEW.id, NEW.created_at) IS DISTINCT FROM (OLD.name, OLD.id, OLD.created_at))
EXECUTE FUNCTION refuse('a tenant stays who it is');

CREATE TRIGGER as_made BEFORE UPDATE OF digest, id, created_at ON api_keys FOR EACH ROW
WHEN ((NEW.digest, NEW.id, NEW.created_at) IS DISTINCT FROM (OLD.digest, OLD.id, OLD.created_at))
EXECUTE FUNCTION refuse('a key stays the key it is');

CREATE TRIGGER only_forward BEFORE UPDATE ON api_keys FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR NEW.tenant <> OLD.tenant
   OR (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at))
EXECUTE FUNCTION refuse('a key keeps its tenant, and a revoked one stays revoked');

CREATE TRIGGER only_forward BEFORE UPDATE ON slots FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR NEW.epoch < OLD.epoch OR NEW.number <> OLD.number)
EXECUTE FUNCTION refuse('the epoch of a slot never falls');

CREATE TRIGGER only_forward BEFORE UPDATE ON head FOR EACH ROW
WHEN (NEW.position < OLD.position OR NEW.at < OLD.at)
EXECUTE FUNCTION refuse('positions and the store''s time never go back');

CREATE TRIGGER as_made BEFORE UPDATE ON meta FOR EACH ROW
WHEN ((NEW.name, NEW.value) IS DISTINCT FROM (OLD.name, OLD.value))
EXECUTE FUNCTION refuse('the secret and what else is said of the database stay as they are');

-- Tables with no further rule about updates.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['tenants', 'accounts', 'balances', 'cursors'] LOOP
        EXECUTE format('CREATE TRIGGER only_forward BEFORE UPDATE ON %I FOR EACH ROW
            WHEN (NEW.revision <= OLD.revision)
            EXECUTE FUNCTION refuse(''the revision grows with every change'')', name);
    END LOOP;
END $$;

DO $$
DECLARE
    rule RECORD;
BEGIN
    FOR rule IN SELECT t.tgname, t.tgrelid::regclass AS on_table
                FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
                WHERE c.relnamespace = 'counterfoil'::regnamespace AND NOT t.tgisinternal LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', rule.on_table, rule.tgname);
    END LOOP;
END $$;
