-- A store as format 1 wrote it: one settled charge, one at work, a tenant with its key, a worker slot.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('clock_boot_id','00000000-0000-0000-0000-000000000001');
INSERT INTO meta VALUES('clock_boottime_ms',5000);
INSERT INTO meta VALUES('clock_store_ms',1760000000000);
INSERT INTO meta VALUES('secret',X'deadbeef00000000000000000000000000000000000000000000000000000000');
CREATE TABLE claims (
    subject         INTEGER PRIMARY KEY,
    id              BLOB    NOT NULL CHECK (length(id) = 32),
    tenant          INTEGER NOT NULL,
    fingerprint     BLOB    NOT NULL,
    request         BLOB    NOT NULL,
    created_at      INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    revision        INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    state           TEXT    NOT NULL,
    holder          INTEGER,
    lease_until     INTEGER,
    lease_ceiling   INTEGER,
    not_before      INTEGER,
    replay_until    INTEGER,
    tombstone_until INTEGER,
    sweep_at        INTEGER,
    status          INTEGER,
    media           TEXT,
    location        TEXT,
    body            BLOB
) STRICT;
INSERT INTO claims VALUES(1,X'1dede82649db2478f28c4781208921de08dbe76dbe46d15dbdcdfcc1bb785d17',2,X'1dede82649db2478f28c4781208921de08dbe76dbe46d15dbdcdfcc1bb785d17',X'0199c82cc0002478f28c4781208921de',1760000000000,1,2,1,'completed',NULL,NULL,NULL,NULL,1760086552929,1760090152929,1760086552929,201,'json','/v1/charges/ch_0000000000000000000000',X'7b226964223a2263685f31222c22737461747573223a22737563636565646564227d');
INSERT INTO claims VALUES(2,X'212535da3ec5858151fcc70410c088f696489183b2a8edf6a808577b513966cc',3,X'212535da3ec5858151fcc70410c088f696489183b2a8edf6a808577b513966cc',X'0199c82cc000858151fcc70410c088f6',1760000000000,1,1,1,'in_flight',16385,1760000030000,1760003600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE charges (
    id                 INTEGER PRIMARY KEY,
    tenant             INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL CHECK (amount_minor > 0),
    asset              TEXT    NOT NULL,
    payment_method     TEXT    NOT NULL,
    capture            INTEGER NOT NULL,
    destination        INTEGER NOT NULL,
    description        TEXT,
    metadata           TEXT    NOT NULL,
    status             TEXT    NOT NULL,
    provider           TEXT    NOT NULL,
    provider_reference TEXT,
    failure            TEXT,
    decline_code       TEXT,
    created_at         INTEGER NOT NULL,
    revision           INTEGER NOT NULL
) STRICT;
INSERT INTO charges VALUES(1,2,1250,'USD','pm_card_visa',1,7,'Order 1001','{"order":"1001"}','succeeded','simulator','pi_3PabcDEFghiJKLmn0000000',NULL,NULL,1760000000000,2);
INSERT INTO charges VALUES(2,3,1250,'USD','pm_card_visa',1,7,'Order 1001','{"order":"1001"}','processing','simulator',NULL,NULL,NULL,1760000000000,1);
CREATE TABLE outbox (
    charge        INTEGER PRIMARY KEY,
    claim         BLOB    NOT NULL,
    tenant        INTEGER NOT NULL,
    profile       TEXT    NOT NULL,
    endpoint      TEXT    NOT NULL,
    due_at        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    idle_calls    INTEGER NOT NULL,
    unknown       INTEGER NOT NULL,
    server_errors INTEGER NOT NULL,
    first_sent_at INTEGER NOT NULL,
    last_sent_at  INTEGER NOT NULL,
    parked        TEXT,
    revision      INTEGER NOT NULL
) STRICT;
INSERT INTO outbox VALUES(2,X'212535da3ec5858151fcc70410c088f696489183b2a8edf6a808577b513966cc',3,'simulator','http://127.0.0.1:4242',1760000030000,1760000000000,1,0,0,0,1760000000000,1760000000000,NULL,1);
CREATE TABLE audit_log (
    subject INTEGER NOT NULL,
    id      BLOB    NOT NULL,
    tenant  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    PRIMARY KEY (subject, id)
) STRICT, WITHOUT ROWID;
INSERT INTO audit_log VALUES(1,X'0199c82cc0002478f28c4781208921de',2,1760000000000,1,'claimed','request=req_01JD0000000000000000000000 reused=false');
INSERT INTO audit_log VALUES(1,X'0199c82cc0002478f28c4781208921df',2,1760000000000,1,'provider_answered','outcome=approved generation=1');
INSERT INTO audit_log VALUES(1,X'0199c82cc0002478f28c4781208921e0',2,1760000000000,1,'settled','outcome=approved generation=1');
INSERT INTO audit_log VALUES(2,X'0199c82cc000858151fcc70410c088f6',3,1760000000000,1,'claimed','request=req_01JD0000000000000000000000 reused=false');
CREATE TABLE tenants (
    name         TEXT PRIMARY KEY,
    id           INTEGER NOT NULL,
    main_account INTEGER NOT NULL,
    key_policy   TEXT,
    created_at   INTEGER NOT NULL,
    revision     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tenants VALUES('acme',1,7,'required',1760000000000,1);
CREATE TABLE api_keys (
    digest     BLOB PRIMARY KEY,
    id         TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    revision   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO api_keys VALUES(X'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','key_1','acme','read,write',1760000000000,NULL,1);
CREATE TABLE slots (
    number      INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    revision    INTEGER NOT NULL
) STRICT;
INSERT INTO slots VALUES(5,1,1760000000000,1);
CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    set_id   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    touched  BLOB    NOT NULL
) STRICT;
INSERT INTO commits VALUES(1,1,1760000000000,X'011dede82649db2478f28c4781208921de08dbe76dbe46d15dbdcdfcc1bb785d170200000000000000010300000000000000010400000000000000010199c82cc0002478f28c4781208921de');
INSERT INTO commits VALUES(2,2,1760000000000,X'011dede82649db2478f28c4781208921de08dbe76dbe46d15dbdcdfcc1bb785d170200000000000000010300000000000000010400000000000000010199c82cc0002478f28c4781208921df0400000000000000010199c82cc0002478f28c4781208921e0');
INSERT INTO commits VALUES(3,3,1760000000000,X'01212535da3ec5858151fcc70410c088f696489183b2a8edf6a808577b513966cc0200000000000000020300000000000000020400000000000000020199c82cc000858151fcc70410c088f6');
INSERT INTO commits VALUES(4,4,1760000000000,X'050461636d6506cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc070005');
CREATE UNIQUE INDEX claims_by_id ON claims (id);
CREATE INDEX claims_by_sweep ON claims (sweep_at) WHERE sweep_at IS NOT NULL;
CREATE INDEX charges_by_tenant ON charges (tenant);
CREATE INDEX outbox_by_due ON outbox (due_at) WHERE parked IS NULL;
CREATE INDEX outbox_parked ON outbox (parked) WHERE parked IS NOT NULL;
CREATE UNIQUE INDEX commits_by_set ON commits (set_id);
CREATE TRIGGER claims_only_move_forward BEFORE UPDATE ON claims
WHEN NEW.revision <= OLD.revision
  OR NEW.fence < OLD.fence
  OR NEW.id <> OLD.id
  OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
          THEN NOT ((NEW.subject <> OLD.subject AND NEW.fence > OLD.fence)
                 OR (NEW.subject = OLD.subject AND NEW.state = 'expired' AND OLD.state <> 'expired'))
          ELSE NEW.subject <> OLD.subject
     END
BEGIN
    SELECT RAISE(FAIL, 'a claim only moves forward: fence and revision grow, and a settled claim only expires or is claimed anew under a higher fence');
END;
CREATE TRIGGER claims_are_kept_while_needed BEFORE DELETE ON claims
WHEN OLD.sweep_at IS NULL
BEGIN
    SELECT RAISE(FAIL, 'a claim that is not settled is never removed');
END;
CREATE TRIGGER charges_are_kept BEFORE DELETE ON charges
BEGIN
    SELECT RAISE(FAIL, 'charges are never removed');
END;
CREATE TRIGGER charges_keep_their_order
BEFORE UPDATE OF id, tenant, amount_minor, asset, payment_method, capture, destination, description, metadata ON charges
BEGIN
    SELECT RAISE(FAIL, 'what a charge was ordered for never changes');
END;
CREATE TRIGGER audit_log_is_not_rewritten BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(FAIL, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_is_kept BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(FAIL, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_is_not_replaced BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE subject = NEW.subject AND id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'the audit log is append-only');
END;
CREATE TRIGGER commits_are_not_rewritten BEFORE UPDATE ON commits
BEGIN
    SELECT RAISE(FAIL, 'the log of commits is append-only');
END;
CREATE TRIGGER commits_are_kept BEFORE DELETE ON commits
BEGIN
    SELECT RAISE(FAIL, 'the log of commits is append-only');
END;
CREATE TRIGGER commits_are_not_replaced BEFORE INSERT ON commits
WHEN NEW.position <= (SELECT max(position) FROM commits)
BEGIN
    SELECT RAISE(FAIL, 'the log of commits is append-only');
END;
COMMIT;
PRAGMA application_id = 1131374191;
PRAGMA user_version = 1;
