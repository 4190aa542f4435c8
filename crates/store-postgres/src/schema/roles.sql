-- Roles, grants and row-level security.
--
-- counterfoil_writer is the role for servers that should not own the tables. Grant it to their
-- login. It may insert, and it has no right to rewrite history even without the triggers.
--
-- counterfoil_reader is for people and tools that look at one tenant. Row-level security shows the
-- rows of the tenant named by the setting counterfoil.tenant, and no rows while that is not set.
-- The owner of the tables is not subject to row-level security.
--
-- Roles belong to the whole PostgreSQL server. If they are missing and may not be created, this
-- part is left out with a notice. To add it later, create the roles and run this file by hand.

CREATE FUNCTION chosen_tenant() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('counterfoil.tenant', TRUE), '')::BIGINT;

DO $$
DECLARE
    role TEXT;
    name TEXT;
BEGIN
    FOREACH role IN ARRAY ARRAY['counterfoil_writer', 'counterfoil_reader'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN NULL;
                WHEN insufficient_privilege THEN
                    RAISE NOTICE 'no right to create the role %: roles and row-level security are left out', role;
                    RETURN;
            END;
        END IF;
    END LOOP;
    GRANT USAGE ON SCHEMA counterfoil TO counterfoil_writer, counterfoil_reader;

    GRANT SELECT ON schema_steps TO counterfoil_writer;
    GRANT SELECT, INSERT ON account_names, assets, audit_log, commit_groups, journal_entries, journal_transactions,
        reversals TO counterfoil_writer;
    -- Taking positions is an upsert of the only row of head, so it needs INSERT.
    GRANT SELECT, INSERT, UPDATE ON accounts, api_keys, balances, charges, cursors, head, holds, meta, operations,
        payouts, slots, tenants TO counterfoil_writer;
    -- Locking a row before its removal needs UPDATE.
    GRANT SELECT, INSERT, UPDATE, DELETE ON claims, outbox, snapshots TO counterfoil_writer;
    GRANT SELECT, INSERT, DELETE ON unbalanced_transactions TO counterfoil_writer;

    FOREACH name IN ARRAY ARRAY['claims', 'charges', 'operations', 'payouts', 'outbox', 'audit_log', 'accounts',
                                'account_names', 'assets', 'balances', 'journal_transactions', 'journal_entries',
                                'reversals', 'holds', 'snapshots'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO counterfoil_reader', name);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_the_tenant ON %I FOR SELECT TO counterfoil_reader
            USING (tenant = chosen_tenant())', name);
        EXECUTE format('CREATE POLICY all_rows ON %I TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE)', name);
    END LOOP;
END $$;
