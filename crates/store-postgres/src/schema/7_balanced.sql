-- Whether transactions balance is asked once for all that a statement opens, not once for each when they commit. One that is
-- whole by then needs no more: nothing can be added to it, and nothing is taken away. One that is not, because its entries
-- come in later statements, is noted, and looked at when its database transaction commits, as all were before.

CREATE TABLE unproven (
    transaction BIGINT NOT NULL
);

CREATE FUNCTION proven_or_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counterfoil.unproven (transaction)
    SELECT opened.id
    FROM opened CROSS JOIN LATERAL (
        SELECT count(*) AS entries, sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) AS sum,
               min(asset) = max(asset) AND min(layer) = max(layer) AS alike
        FROM counterfoil.journal_entries WHERE transaction = opened.id
    ) AS found
    WHERE found.entries <> opened.legs
       OR CASE WHEN found.alike THEN found.sum <> 0
               ELSE EXISTS (SELECT 1 FROM counterfoil.journal_entries WHERE transaction = opened.id
                            GROUP BY asset, layer
                            HAVING sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) <> 0)
          END;
    RETURN NULL;
END $$;

-- The rule as it was, for what was noted. The event is queued for good: deleting the note does not take it back.
CREATE FUNCTION noted_is_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    meant    BIGINT;
    entries  BIGINT;
    balanced BOOLEAN;
BEGIN
    SELECT legs INTO meant FROM counterfoil.journal_transactions WHERE id = NEW.transaction;
    SELECT coalesce(sum(part.entries), 0), coalesce(bool_and(part.sum = 0), TRUE) INTO entries, balanced
    FROM (SELECT count(*) AS entries, sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) AS sum
          FROM counterfoil.journal_entries WHERE transaction = NEW.transaction GROUP BY asset, layer) AS part;
    IF entries <> meant THEN
        RAISE EXCEPTION 'transaction % says % entries and has %', NEW.transaction, meant, entries USING ERRCODE = 'CF003';
    END IF;
    IF NOT balanced THEN
        RAISE EXCEPTION 'transaction % does not balance', NEW.transaction USING ERRCODE = 'CF003';
    END IF;
    DELETE FROM counterfoil.unproven WHERE transaction = NEW.transaction;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON unproven
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION noted_is_balanced();
ALTER TABLE unproven ENABLE ALWAYS TRIGGER balanced;

DROP TRIGGER balanced ON journal_transactions;
DROP FUNCTION journal_is_balanced();
CREATE TRIGGER balanced AFTER INSERT ON journal_transactions
    REFERENCING NEW TABLE AS opened FOR EACH STATEMENT EXECUTE FUNCTION proven_or_noted();
ALTER TABLE journal_transactions ENABLE ALWAYS TRIGGER balanced;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'counterfoil_writer') THEN
        GRANT SELECT, INSERT, DELETE ON unproven TO counterfoil_writer;
    END IF;
END $$;
