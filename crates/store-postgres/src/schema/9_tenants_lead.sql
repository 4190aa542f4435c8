-- The tenant leads every key of what belongs to one. A key with another tenant's number finds nothing, a tenant's rows lie
-- together, and lists need no index of their own. Servers of older schemas ask by id alone, which nothing serves any more:
-- they are turned away. The first rename stops the commits of those that still run.
--
-- It locks everything it touches for as long as it takes: it builds every key anew, and writes anew the tables that get a
-- tenant, most of all the journal's entries.

SET LOCAL statement_timeout = 0;

-- In the order in which servers lock: who is in the middle of a commit ends it first.
LOCK TABLE idempotency_keys, charges, operations, payouts, outbox, audit_log, accounts, balances, journal_transactions,
    reversals, holds, snapshots, head, commits, journal_entries, unproven IN ACCESS EXCLUSIVE MODE;

-- What a commit touched names its tenant now.
ALTER TABLE commits RENAME COLUMN touched TO rows;

-- Whose rows are that did not say so. What is of an account or a transaction that is not there is nobody's.
CREATE FUNCTION owner_of(kind TEXT, number BIGINT) RETURNS BIGINT LANGUAGE plpgsql STABLE AS $$
DECLARE
    owner BIGINT;
BEGIN
    IF kind = 'account' THEN
        SELECT tenant INTO owner FROM counterfoil.accounts WHERE id = number;
    ELSE
        SELECT tenant INTO owner FROM counterfoil.journal_transactions WHERE id = number;
    END IF;
    RETURN coalesce(owner, -9223372036854775808);
END $$;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_policies WHERE schemaname = 'counterfoil' AND tablename = 'balances') THEN
        DROP POLICY of_the_tenant ON journal_entries;
        DROP POLICY of_the_tenant ON balances;
        DROP POLICY of_the_tenant ON snapshots;
    END IF;
END $$;

ALTER TABLE journal_entries DROP CONSTRAINT journal_entries_pkey;
DROP INDEX journal_entries_by_account;
ALTER TABLE journal_entries ADD COLUMN tenant BIGINT;
ALTER TABLE journal_entries
    ALTER COLUMN tenant TYPE BIGINT USING owner_of('transaction', transaction),
    ADD PRIMARY KEY (tenant, transaction, leg);
CREATE UNIQUE INDEX journal_entries_by_account ON journal_entries (tenant, account, position, transaction, leg);

ALTER TABLE reversals DROP CONSTRAINT reversals_pkey;
ALTER TABLE reversals ADD COLUMN tenant BIGINT;
ALTER TABLE reversals
    ALTER COLUMN tenant TYPE BIGINT USING owner_of('transaction', original),
    ADD PRIMARY KEY (tenant, original);

ALTER TABLE balances DROP CONSTRAINT balances_pkey;
ALTER TABLE balances ADD COLUMN tenant BIGINT;
ALTER TABLE balances
    ALTER COLUMN tenant TYPE BIGINT USING owner_of('account', account),
    ADD PRIMARY KEY (tenant, account, shard);

ALTER TABLE snapshots DROP CONSTRAINT snapshots_pkey;
ALTER TABLE snapshots ADD COLUMN tenant BIGINT;
ALTER TABLE snapshots
    ALTER COLUMN tenant TYPE BIGINT USING owner_of('account', account),
    ADD PRIMARY KEY (tenant, account, position);

DROP FUNCTION owner_of(TEXT, BIGINT);

-- These have it already. What was listed by an index of its own is listed by the key.
DROP INDEX idempotency_keys_by_subject, charges_by_tenant, payouts_by_tenant, accounts_by_tenant,
    journal_transactions_by_tenant, holds_by_tenant, operations_by_charge;
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE charges DROP CONSTRAINT charges_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE operations DROP CONSTRAINT operations_pkey, ADD PRIMARY KEY (tenant, id);
CREATE INDEX operations_by_charge ON operations (tenant, charge, id);
ALTER TABLE payouts DROP CONSTRAINT payouts_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE outbox DROP CONSTRAINT outbox_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE audit_log DROP CONSTRAINT audit_log_pkey, ADD PRIMARY KEY (tenant, subject, id);
ALTER TABLE accounts DROP CONSTRAINT accounts_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE journal_transactions DROP CONSTRAINT journal_transactions_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE holds DROP CONSTRAINT holds_pkey, ADD PRIMARY KEY (tenant, id);

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
    FOREACH name IN ARRAY ARRAY['journal_entries', 'balances', 'snapshots', 'reversals'] LOOP
        EXECUTE format('CREATE POLICY of_the_tenant ON %I FOR SELECT TO counterfoil_reader
            USING (tenant = chosen_tenant())', name);
    END LOOP;
    GRANT SELECT ON reversals TO counterfoil_reader;
    ALTER TABLE reversals ENABLE ROW LEVEL SECURITY;
    CREATE POLICY all_rows ON reversals TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE);
END $$;

ANALYZE journal_entries, reversals, balances, snapshots;
