-- Volume 0 holds the keys from before. Keys stand in volumes, in the order in which they came, and only within a volume in the order of their digests. A new key goes
-- into the youngest volume, whose pages are at hand; in one tree of all keys each would go to a page of its own, and keys would
-- cost more the more there are.
ALTER TABLE claims ADD COLUMN volume INTEGER NOT NULL DEFAULT 0;
DROP INDEX claims_by_id;
CREATE UNIQUE INDEX claims_by_id ON claims (volume, id);

-- The first eight bytes of every key that went into a volume, once no more go there: who wants to know all keys reads these in one
-- piece and not the index page by page. Keys that are gone since may be among them.
CREATE TABLE volume_keys (
    volume INTEGER PRIMARY KEY,
    keys   BLOB    NOT NULL
) STRICT;
CREATE TRIGGER claims_go_into_an_open_volume BEFORE INSERT ON claims
WHEN EXISTS (SELECT 1 FROM volume_keys WHERE volume = NEW.volume)
BEGIN
    SELECT RAISE(FAIL, 'this volume is closed: take the highest of claims, or one above all of volume_keys');
END;
CREATE TRIGGER claims_move_into_an_open_volume BEFORE UPDATE OF volume, id ON claims
WHEN (NEW.volume <> OLD.volume OR NEW.id <> OLD.id) AND EXISTS (SELECT 1 FROM volume_keys WHERE volume = NEW.volume)
BEGIN
    SELECT RAISE(FAIL, 'this volume is closed: take the highest of claims, or one above all of volume_keys');
END;
CREATE TRIGGER volume_keys_are_not_rewritten BEFORE UPDATE ON volume_keys
BEGIN
    SELECT RAISE(FAIL, 'the keys of a closed volume are listed once');
END;
CREATE TRIGGER volume_keys_are_whole BEFORE INSERT ON volume_keys
WHEN EXISTS (SELECT 1 FROM volume_keys WHERE volume = NEW.volume)
  OR NEW.volume >= (SELECT max(volume) FROM claims)
  OR length(NEW.keys) <> 8 * (SELECT count(*) FROM claims WHERE volume = NEW.volume)
BEGIN
    SELECT RAISE(FAIL, 'the keys of a closed volume are listed once, and all of them');
END;

-- The youngest first: it is there that keys are used again.
CREATE VIEW claim_volumes (volume) AS
WITH RECURSIVE volumes (volume) AS (
    SELECT max(volume) FROM claims
    UNION ALL
    SELECT (SELECT max(claims.volume) FROM claims WHERE claims.volume < volumes.volume)
    FROM volumes WHERE volumes.volume IS NOT NULL
)
SELECT volume FROM volumes WHERE volume IS NOT NULL;

CREATE TRIGGER claims_are_not_replaced BEFORE INSERT ON claims
WHEN EXISTS (SELECT 1 FROM claims WHERE subject = NEW.subject) OR EXISTS (
    SELECT 1 FROM claim_volumes CROSS JOIN claims ON claims.volume = claim_volumes.volume WHERE claims.id = NEW.id
)
BEGIN
    SELECT RAISE(FAIL, 'a key has one record, and what a claim makes has one claim');
END;
CREATE TRIGGER claims_do_not_displace_each_other BEFORE UPDATE OF subject ON claims
WHEN NEW.subject <> OLD.subject AND EXISTS (SELECT 1 FROM claims WHERE subject = NEW.subject)
BEGIN
    SELECT RAISE(FAIL, 'what a claim makes has one claim');
END;
