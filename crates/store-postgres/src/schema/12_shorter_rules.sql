-- The same rules in fewer words. The server keeps a rule as text and reads that anew for every statement, whether it is about one
-- row or a hundred, so its length is paid by every group. No row is refused that was not, and none taken. It is no transaction: a
-- rule is replaced within one statement that holds its table for a moment, and the rows that are there are looked at afterwards,
-- while servers go on. All of it may be run again.

SET lock_timeout = '1s'
--;
ALTER TABLE idempotency_keys
    DROP CONSTRAINT IF EXISTS idempotency_keys_fence_check,
    DROP CONSTRAINT IF EXISTS idempotency_keys_revision_check,
    DROP CONSTRAINT IF EXISTS idempotency_keys_attempts_check,
    DROP CONSTRAINT IF EXISTS counts_begin_at_zero,
    DROP CONSTRAINT IF EXISTS state_has_its_columns,
    ADD CONSTRAINT counts_begin_at_zero CHECK (LEAST(fence, revision, attempts) >= 0) NOT VALID,
    ADD CONSTRAINT state_has_its_columns CHECK (CASE state
        WHEN 'in_flight'    THEN (holder, lease_until, lease_ceiling) IS NOT NULL
        WHEN 'failed_retry' THEN not_before IS NOT NULL
        WHEN 'uncertain'    THEN num_nulls(holder, lease_until, lease_ceiling) = CASE WHEN not_before IS NULL THEN 0 ELSE 3 END
        WHEN 'expired'      THEN tombstone_until IS NOT NULL AND body IS NULL
        ELSE state = ANY ('{completed,failed_terminal}')
         AND (replay_until, tombstone_until, sweep_at, status, media, body) IS NOT NULL
    END) NOT VALID
--;
ALTER TABLE charges
    DROP CONSTRAINT IF EXISTS charges_status_check,
    DROP CONSTRAINT IF EXISTS a_wallet_pays_a_part,
    DROP CONSTRAINT IF EXISTS given_back_is_not_more_than_taken,
    ADD CONSTRAINT charges_status_check CHECK (status = ANY
        ('{processing,requires_capture,succeeded,failed,voided,refunded,partially_refunded,parked}')) NOT VALID,
    ADD CONSTRAINT a_wallet_pays_a_part CHECK ((wallet_account IS NULL) = (wallet_amount IS NULL)
        AND (wallet_amount > 0 AND wallet_amount < amount_minor) IS NOT FALSE) NOT VALID,
    ADD CONSTRAINT given_back_is_not_more_than_taken CHECK (LEAST(captured, refunded, refunding) >= 0
        AND refunded <= captured - refunding) NOT VALID
--;
ALTER TABLE outbox
    DROP CONSTRAINT IF EXISTS outbox_flow_check,
    DROP CONSTRAINT IF EXISTS outbox_way_check,
    DROP CONSTRAINT IF EXISTS outbox_step_check,
    DROP CONSTRAINT IF EXISTS outbox_generation_check,
    DROP CONSTRAINT IF EXISTS outbox_idle_calls_check,
    DROP CONSTRAINT IF EXISTS outbox_server_errors_check,
    DROP CONSTRAINT IF EXISTS outbox_revision_check,
    DROP CONSTRAINT IF EXISTS counts_begin_at_zero,
    DROP CONSTRAINT IF EXISTS work_is_for_one_payment,
    ADD CONSTRAINT outbox_flow_check
        CHECK (flow = ANY ('{charge,authorize,split,capture,void,refund,payout}')) NOT VALID,
    ADD CONSTRAINT outbox_way_check CHECK (way = ANY ('{forward,back}')) NOT VALID,
    ADD CONSTRAINT counts_begin_at_zero
        CHECK (LEAST(step, generation, idle_calls, server_errors, revision) >= 0) NOT VALID,
    ADD CONSTRAINT work_is_for_one_payment CHECK ((charge IS NULL) <> (payout IS NULL)) NOT VALID
--;
ALTER TABLE journal_entries
    DROP CONSTRAINT IF EXISTS journal_entries_side_check,
    DROP CONSTRAINT IF EXISTS journal_entries_layer_check,
    ADD CONSTRAINT journal_entries_side_check CHECK (side = ANY ('{debit,credit}')) NOT VALID,
    ADD CONSTRAINT journal_entries_layer_check CHECK (layer = ANY ('{posted,pending,released}')) NOT VALID
--;
-- What a trigger is asked first is short and lets the moves of nearly every update pass; the whole rule is asked of the others.
CREATE OR REPLACE FUNCTION claim_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.revision <= OLD.revision
        OR NEW.fence < OLD.fence
        OR CASE WHEN OLD.state IN ('completed', 'failed_terminal', 'expired')
                THEN NOT (CASE WHEN NEW.subject = OLD.subject THEN NEW.state = 'expired' AND OLD.state <> 'expired'
                               ELSE NEW.fence > OLD.fence END)
                ELSE NEW.subject <> OLD.subject OR NEW.state = 'expired'
                  OR (OLD.state = 'failed_retry' AND NEW.state <> 'in_flight')
                  OR (OLD.state = 'uncertain' AND NEW.state IN ('in_flight', 'failed_retry'))
           END) THEN
        RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'CF002';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS only_forward ON idempotency_keys;
CREATE TRIGGER only_forward BEFORE UPDATE ON idempotency_keys FOR EACH ROW
WHEN (OLD.state <> 'in_flight' OR NEW.state = 'expired' OR NEW.subject <> OLD.subject
   OR NEW.fence < OLD.fence OR NEW.revision <= OLD.revision)
EXECUTE FUNCTION claim_moves_forward('a claim only moves forward: fence and revision grow, and a settled claim only expires or is claimed anew under a higher fence');
ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER only_forward
--;
CREATE OR REPLACE FUNCTION charge_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.revision <= OLD.revision OR NEW.captured < OLD.captured OR NEW.refunded < OLD.refunded
        OR CASE OLD.status
             WHEN 'processing'         THEN FALSE
             WHEN 'parked'             THEN FALSE
             WHEN NEW.status           THEN FALSE
             WHEN 'requires_capture'   THEN NEW.status NOT IN ('succeeded', 'voided', 'parked')
             WHEN 'succeeded'          THEN NEW.status NOT IN ('partially_refunded', 'refunded')
             WHEN 'partially_refunded' THEN NEW.status <> 'refunded'
             ELSE TRUE
           END) THEN
        RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'CF002';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS only_forward ON charges;
CREATE TRIGGER only_forward BEFORE UPDATE ON charges FOR EACH ROW
WHEN (OLD.status <> 'processing' OR NEW.captured < OLD.captured OR NEW.refunded < OLD.refunded
   OR NEW.revision <= OLD.revision)
EXECUTE FUNCTION charge_moves_forward('its revision grows, a settled charge stays settled, and what was taken or given back never becomes less');
ALTER TABLE charges ENABLE ALWAYS TRIGGER only_forward
--;
ALTER TABLE idempotency_keys VALIDATE CONSTRAINT counts_begin_at_zero, VALIDATE CONSTRAINT state_has_its_columns
--;
ALTER TABLE charges VALIDATE CONSTRAINT charges_status_check, VALIDATE CONSTRAINT a_wallet_pays_a_part,
    VALIDATE CONSTRAINT given_back_is_not_more_than_taken
--;
ALTER TABLE outbox VALIDATE CONSTRAINT outbox_flow_check, VALIDATE CONSTRAINT outbox_way_check,
    VALIDATE CONSTRAINT counts_begin_at_zero, VALIDATE CONSTRAINT work_is_for_one_payment
--;
ALTER TABLE journal_entries VALIDATE CONSTRAINT journal_entries_side_check,
    VALIDATE CONSTRAINT journal_entries_layer_check
