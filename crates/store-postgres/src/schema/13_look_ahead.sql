-- A claim says when the sweep looks at it from its first write on, and mostly keeps that time when it is settled: then no column of an
-- index changes, and the row stays on its page, if there is room for the answer. So what may be removed is told by its state, and a
-- page is begun with room for what its rows become.

DROP TRIGGER kept_while_needed ON idempotency_keys;
CREATE TRIGGER kept_while_needed BEFORE DELETE ON idempotency_keys FOR EACH ROW
WHEN (OLD.state = ANY ('{in_flight,failed_retry,uncertain}') OR OLD.sweep_at IS NULL)
EXECUTE FUNCTION refuse('a claim that is not settled is never removed');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER kept_while_needed;
ALTER TABLE idempotency_keys SET (fillfactor = 25);
