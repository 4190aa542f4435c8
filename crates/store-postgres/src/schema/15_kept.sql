-- What is kept for a time is kept for that time, and what a row is about never changes, in the tables that had no rule for it yet. Nothing
-- that a server of schema 14 does is refused. Triggers on named columns are not even looked at by statements that do not set them.

-- The store's time is the server's clock, or the last commit's where that is later; a process may be a little ahead of both. So what is
-- over within a minute counts as over.
CREATE OR REPLACE FUNCTION nearly_now() RETURNS BIGINT LANGUAGE sql VOLATILE
    RETURN greatest(now_ms(), (SELECT at FROM head WHERE one)) + 60000;

-- A settled claim is kept until its tombstone ends: neither removed nor claimed anew.
CREATE OR REPLACE FUNCTION claim_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.tombstone_until > counterfoil.nearly_now() THEN
        RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'CF002';
    END IF;
    RETURN OLD;
END $$;
CREATE OR REPLACE TRIGGER kept_for_its_time BEFORE DELETE ON idempotency_keys FOR EACH ROW
WHEN (OLD.tombstone_until > now_ms())
EXECUTE FUNCTION claim_is_kept('a settled claim is kept until its tombstone ends');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER kept_for_its_time;

CREATE OR REPLACE FUNCTION claim_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.revision <= OLD.revision
        OR NEW.fence < OLD.fence
        OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
                THEN NOT (CASE WHEN NEW.subject = OLD.subject THEN NEW.state = 'expired' AND OLD.state <> 'expired'
                               ELSE NEW.fence > OLD.fence AND OLD.tombstone_until <= counterfoil.nearly_now() END)
                ELSE NEW.subject <> OLD.subject OR NEW.state = 'expired'
                  OR (OLD.state = 'failed_retry' AND NEW.state <> 'in_flight')
                  OR (OLD.state = 'uncertain' AND NEW.state IN ('in_flight', 'failed_retry'))
           END) THEN
        RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'CF002';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE OF name, id, created_at ON tenants FOR EACH ROW
WHEN ((NEW.name, NEW.id, NEW.created_at) IS DISTINCT FROM (OLD.name, OLD.id, OLD.created_at))
EXECUTE FUNCTION refuse('a tenant stays who it is');
ALTER TABLE tenants ENABLE ALWAYS TRIGGER as_made;
CREATE OR REPLACE TRIGGER only_forward BEFORE UPDATE ON tenants FOR EACH ROW WHEN (NEW.revision <= OLD.revision)
EXECUTE FUNCTION refuse('the revision grows with every change of a tenant');
ALTER TABLE tenants ENABLE ALWAYS TRIGGER only_forward;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE OF digest, id, created_at ON api_keys FOR EACH ROW
WHEN ((NEW.digest, NEW.id, NEW.created_at) IS DISTINCT FROM (OLD.digest, OLD.id, OLD.created_at))
EXECUTE FUNCTION refuse('a key stays the key it is');
ALTER TABLE api_keys ENABLE ALWAYS TRIGGER as_made;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE OF tenant, id, code, asset, normal, floor, cap, metadata, created_at ON accounts FOR EACH ROW
WHEN ((NEW.tenant, NEW.id, NEW.code, NEW.asset, NEW.normal, NEW.floor, NEW.cap, NEW.metadata, NEW.created_at)
      IS DISTINCT FROM
      (OLD.tenant, OLD.id, OLD.code, OLD.asset, OLD.normal, OLD.floor, OLD.cap, OLD.metadata, OLD.created_at))
EXECUTE FUNCTION refuse('an account stays its tenant''s, as it was opened');
ALTER TABLE accounts ENABLE ALWAYS TRIGGER as_made;
CREATE OR REPLACE TRIGGER only_forward BEFORE UPDATE ON accounts FOR EACH ROW WHEN (NEW.revision <= OLD.revision)
EXECUTE FUNCTION refuse('the revision grows with every change of an account');
ALTER TABLE accounts ENABLE ALWAYS TRIGGER only_forward;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE OF expires_at, metadata, created_at ON holds FOR EACH ROW
WHEN ((NEW.expires_at, NEW.metadata, NEW.created_at) IS DISTINCT FROM (OLD.expires_at, OLD.metadata, OLD.created_at))
EXECUTE FUNCTION refuse('a hold ends once, and nothing else of it changes');
ALTER TABLE holds ENABLE ALWAYS TRIGGER as_made;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE OF tenant, account, position ON snapshots FOR EACH ROW
WHEN ((NEW.tenant, NEW.account, NEW.position) IS DISTINCT FROM (OLD.tenant, OLD.account, OLD.position))
EXECUTE FUNCTION refuse('a snapshot stays its account''s, at its position');
ALTER TABLE snapshots ENABLE ALWAYS TRIGGER as_made;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE OF reader ON cursors FOR EACH ROW WHEN (NEW.reader <> OLD.reader)
EXECUTE FUNCTION refuse('a cursor stays its reader''s');
ALTER TABLE cursors ENABLE ALWAYS TRIGGER as_made;
CREATE OR REPLACE TRIGGER only_forward BEFORE UPDATE ON cursors FOR EACH ROW WHEN (NEW.revision <= OLD.revision)
EXECUTE FUNCTION refuse('the revision grows with every change of a cursor');
ALTER TABLE cursors ENABLE ALWAYS TRIGGER only_forward;

CREATE OR REPLACE TRIGGER as_made BEFORE UPDATE ON meta FOR EACH ROW WHEN ((NEW.name, NEW.value) IS DISTINCT FROM (OLD.name, OLD.value))
EXECUTE FUNCTION refuse('the secret and what else is said of the database stay as they are');
ALTER TABLE meta ENABLE ALWAYS TRIGGER as_made;
