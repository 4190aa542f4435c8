-- The same rules, cheaper. A rule's condition is read anew for every statement, as long as it is; a trigger on named
-- columns is not even looked at by a statement that does not set them. So what never changes is guarded by triggers on its
-- columns, which the store's own updates leave alone, and only what may change is compared by every update.

DROP TRIGGER only_forward ON idempotency_keys;
CREATE TRIGGER as_made BEFORE UPDATE OF id, tenant ON idempotency_keys FOR EACH ROW
WHEN (NEW.id <> OLD.id OR NEW.tenant <> OLD.tenant)
EXECUTE FUNCTION refuse('a claim only moves forward, and keeps its key and its tenant');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER as_made;

CREATE TRIGGER only_forward BEFORE UPDATE ON idempotency_keys FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR NEW.fence < OLD.fence
   OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
           THEN NOT (CASE WHEN NEW.subject = OLD.subject THEN NEW.state = 'expired' AND OLD.state <> 'expired'
                          ELSE NEW.fence > OLD.fence END)
           ELSE NEW.subject <> OLD.subject OR NEW.state = 'expired'
             OR (OLD.state = 'failed_retry' AND NEW.state <> 'in_flight')
             OR (OLD.state = 'uncertain' AND NEW.state IN ('in_flight', 'failed_retry'))
      END)
EXECUTE FUNCTION refuse('a claim only moves forward: fence and revision grow, and a settled claim only expires or is claimed anew under a higher fence');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER only_forward;

DROP TRIGGER only_forward ON charges;
DROP TRIGGER stays_settled ON charges;
CREATE TRIGGER as_ordered BEFORE UPDATE OF id, tenant, amount_minor, asset, payment_method, capture, destination,
    wallet_account, wallet_amount, description, metadata, provider, endpoint ON charges FOR EACH ROW
WHEN ((NEW.id, NEW.tenant, NEW.amount_minor, NEW.asset, NEW.payment_method, NEW.capture, NEW.destination,
       NEW.wallet_account, NEW.wallet_amount, NEW.description, NEW.metadata, NEW.provider, NEW.endpoint)
      IS DISTINCT FROM
      (OLD.id, OLD.tenant, OLD.amount_minor, OLD.asset, OLD.payment_method, OLD.capture, OLD.destination,
       OLD.wallet_account, OLD.wallet_amount, OLD.description, OLD.metadata, OLD.provider, OLD.endpoint))
EXECUTE FUNCTION refuse('what a charge was ordered for and its provider never change');
ALTER TABLE charges ENABLE ALWAYS TRIGGER as_ordered;

CREATE TRIGGER only_forward BEFORE UPDATE ON charges FOR EACH ROW
WHEN (NEW.revision <= OLD.revision OR NEW.captured < OLD.captured OR NEW.refunded < OLD.refunded
   OR CASE OLD.status
        WHEN 'processing'         THEN FALSE
        WHEN 'parked'             THEN FALSE
        WHEN NEW.status           THEN FALSE
        WHEN 'requires_capture'   THEN NEW.status NOT IN ('succeeded', 'voided', 'parked')
        WHEN 'succeeded'          THEN NEW.status NOT IN ('partially_refunded', 'refunded')
        WHEN 'partially_refunded' THEN NEW.status <> 'refunded'
        ELSE TRUE
      END)
EXECUTE FUNCTION refuse('its revision grows, a settled charge stays settled, and what was taken or given back never becomes less');
ALTER TABLE charges ENABLE ALWAYS TRIGGER only_forward;

DROP TRIGGER only_forward ON outbox;
CREATE TRIGGER as_made BEFORE UPDATE OF id, charge, payout, profile, endpoint, flow, version ON outbox FOR EACH ROW
WHEN ((NEW.id, NEW.charge, NEW.payout, NEW.profile, NEW.endpoint, NEW.flow, NEW.version)
      IS DISTINCT FROM (OLD.id, OLD.charge, OLD.payout, OLD.profile, OLD.endpoint, OLD.flow, OLD.version))
EXECUTE FUNCTION refuse('work keeps its payment, its provider and its saga');
ALTER TABLE outbox ENABLE ALWAYS TRIGGER as_made;

CREATE TRIGGER only_forward BEFORE UPDATE ON outbox FOR EACH ROW
WHEN (NEW.revision <= OLD.revision
   OR (NEW.generation < OLD.generation AND NEW.step = OLD.step AND NEW.way = OLD.way))
EXECUTE FUNCTION refuse('work keeps its payment, its revision grows, and a key that was given up for a step does not come back');
ALTER TABLE outbox ENABLE ALWAYS TRIGGER only_forward;

-- Only servers of schema 3 asked by charge. They still may: the table holds only what is under way.
DROP INDEX outbox_by_charge;
