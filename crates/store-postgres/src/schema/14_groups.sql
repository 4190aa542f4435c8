-- Commits are kept group by group: the ids of a group's sets and what each touched, in the order of their positions, in one row under
-- the last of them. A row for each set, and two entries in indexes, took a tenth of what a commit costs the server. Rows of before
-- stay where they are. Servers that do not know this table would miss what others commit, so none may run any more.

CREATE TABLE IF NOT EXISTS commit_groups (
    position BIGINT   PRIMARY KEY,
    at       BIGINT   NOT NULL,
    sets     BIGINT[] NOT NULL,
    touched  BYTEA[]  NOT NULL,
    CONSTRAINT each_says_what_it_touched CHECK (cardinality(sets) = cardinality(touched))
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_insert_scale_factor = 0.1);
-- A group mostly fits its page. What does not goes beside it as it is: digests do not become shorter.
ALTER TABLE commit_groups ALTER COLUMN sets SET STORAGE EXTERNAL, ALTER COLUMN touched SET STORAGE EXTERNAL;

CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON commit_groups
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('it is append-only');
ALTER TABLE commit_groups ENABLE ALWAYS TRIGGER append_only;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'counterfoil_writer') THEN
        GRANT SELECT, INSERT ON commit_groups TO counterfoil_writer;
    END IF;
END $$;
