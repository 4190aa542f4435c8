-- Every row that belongs to a tenant says so itself. It only adds, and locks four tables for a moment: servers of older
-- schemas go on, and what they leave out is filled in. Rows that are there already are filled in by the next step.

ALTER TABLE journal_entries ADD COLUMN tenant BIGINT, ADD CONSTRAINT has_an_owner CHECK (tenant IS NOT NULL) NOT VALID;
ALTER TABLE reversals ADD COLUMN tenant BIGINT, ADD CONSTRAINT has_an_owner CHECK (tenant IS NOT NULL) NOT VALID;
ALTER TABLE balances ADD COLUMN tenant BIGINT, ADD CONSTRAINT has_an_owner CHECK (tenant IS NOT NULL) NOT VALID;
ALTER TABLE snapshots ADD COLUMN tenant BIGINT, ADD CONSTRAINT has_an_owner CHECK (tenant IS NOT NULL) NOT VALID;

-- What an older server leaves out. An entry's header comes in the same statement and may not be there yet; its account is.
-- What is of an account or a transaction that is not there is nobody's.
CREATE FUNCTION owned_by_its_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT tenant INTO NEW.tenant FROM counterfoil.accounts WHERE id = NEW.account;
    NEW.tenant := coalesce(NEW.tenant, -9223372036854775808);
    RETURN NEW;
END $$;
CREATE FUNCTION owned_by_its_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT tenant INTO NEW.tenant FROM counterfoil.journal_transactions WHERE id = NEW.original;
    NEW.tenant := coalesce(NEW.tenant, -9223372036854775808);
    RETURN NEW;
END $$;
CREATE FUNCTION owned_by_account_or_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT tenant INTO NEW.tenant FROM counterfoil.accounts WHERE id = NEW.account;
    IF NEW.tenant IS NULL THEN
        SELECT tenant INTO NEW.tenant FROM counterfoil.journal_transactions WHERE id = NEW.transaction;
    END IF;
    NEW.tenant := coalesce(NEW.tenant, -9223372036854775808);
    RETURN NEW;
END $$;
CREATE TRIGGER owner_filled_in BEFORE INSERT ON journal_entries FOR EACH ROW WHEN (NEW.tenant IS NULL)
EXECUTE FUNCTION owned_by_account_or_transaction();
ALTER TABLE journal_entries ENABLE ALWAYS TRIGGER owner_filled_in;
CREATE TRIGGER owner_filled_in BEFORE INSERT ON reversals FOR EACH ROW WHEN (NEW.tenant IS NULL)
EXECUTE FUNCTION owned_by_its_transaction();
ALTER TABLE reversals ENABLE ALWAYS TRIGGER owner_filled_in;
-- A balance may be moved before the next step has come to it.
CREATE TRIGGER owner_filled_in BEFORE INSERT OR UPDATE ON balances FOR EACH ROW WHEN (NEW.tenant IS NULL)
EXECUTE FUNCTION owned_by_its_account();
ALTER TABLE balances ENABLE ALWAYS TRIGGER owner_filled_in;
CREATE TRIGGER owner_filled_in BEFORE INSERT ON snapshots FOR EACH ROW WHEN (NEW.tenant IS NULL)
EXECUTE FUNCTION owned_by_its_account();
ALTER TABLE snapshots ENABLE ALWAYS TRIGGER owner_filled_in;

-- History takes no other change than that its owner is filled in, once.
DROP TRIGGER append_only ON journal_entries;
CREATE TRIGGER append_only BEFORE UPDATE OF transaction, leg, position, at, account, side, layer, amount, asset
    OR DELETE OR TRUNCATE ON journal_entries FOR EACH STATEMENT EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE journal_entries ENABLE ALWAYS TRIGGER append_only;
DROP TRIGGER append_only ON reversals;
CREATE TRIGGER append_only BEFORE UPDATE OF original, undone_by
    OR DELETE OR TRUNCATE ON reversals FOR EACH STATEMENT EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE reversals ENABLE ALWAYS TRIGGER append_only;
CREATE TRIGGER owner_stays BEFORE UPDATE OF tenant ON journal_entries FOR EACH ROW WHEN (OLD.tenant IS NOT NULL)
EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE journal_entries ENABLE ALWAYS TRIGGER owner_stays;
CREATE TRIGGER owner_stays BEFORE UPDATE OF tenant ON reversals FOR EACH ROW WHEN (OLD.tenant IS NOT NULL)
EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE reversals ENABLE ALWAYS TRIGGER owner_stays;

-- Servers take positions by an insertion that meets the row of the head. There is only one, so nothing can be inserted.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'counterfoil_writer') THEN
        GRANT INSERT ON head TO counterfoil_writer;
    END IF;
END $$;
