-- Roles, and a second wall between tenants.
--
-- counterfoil_writer is what a server logs in with (as a member) when it should not own the tables: it can write, and
-- cannot rewrite history even without the triggers, because it has no right to. counterfoil_reader is for people and
-- tools that look at one tenant: row-level security shows only the rows of the tenant named by the setting
-- counterfoil.tenant, and nothing at all while it is not set. Owners are not held back by row-level security.
--
-- Roles belong to the whole server. Where this role may not create them and they are missing, this part is left out
-- and says so; create the roles and run the step's statements by hand if they are wanted.

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
    GRANT SELECT ON ALL TABLES IN SCHEMA counterfoil TO counterfoil_writer;
    GRANT INSERT ON ALL TABLES IN SCHEMA counterfoil TO counterfoil_writer;
    REVOKE INSERT ON schema_steps, head FROM counterfoil_writer;
    GRANT UPDATE ON head, meta, idempotency_keys, charges, outbox, tenants, api_keys, slots, accounts, balances,
        holds, cursors TO counterfoil_writer;
    -- Locking a row before it is removed takes the right to update it.
    GRANT UPDATE ON snapshots TO counterfoil_writer;
    GRANT DELETE ON idempotency_keys, outbox, snapshots TO counterfoil_writer;

    FOREACH name IN ARRAY ARRAY['idempotency_keys', 'charges', 'outbox', 'audit_log', 'accounts', 'account_names',
                                'assets', 'journal_transactions', 'holds'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO counterfoil_reader', name);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_the_tenant ON %I FOR SELECT TO counterfoil_reader
            USING (tenant = chosen_tenant())', name);
        EXECUTE format('CREATE POLICY all_rows ON %I TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE)', name);
    END LOOP;
    -- These carry no tenant of their own: they are the tenant's if their account is.
    FOREACH name IN ARRAY ARRAY['journal_entries', 'balances', 'snapshots'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO counterfoil_reader', name);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_the_tenant ON %I FOR SELECT TO counterfoil_reader
            USING (EXISTS (SELECT 1 FROM accounts WHERE accounts.id = account AND accounts.tenant = chosen_tenant()))',
            name);
        EXECUTE format('CREATE POLICY all_rows ON %I TO counterfoil_writer USING (TRUE) WITH CHECK (TRUE)', name);
    END LOOP;
END $$;
