-- What was captured before there was a column for it. Nobody writes settled charges meanwhile, and no table is locked
-- against readers or writers; with many charges it takes as long as it takes.

SET LOCAL statement_timeout = 0;

UPDATE charges SET captured = amount_minor, revision = revision + 1 WHERE status = 'succeeded' AND captured = 0;

ALTER TABLE charges VALIDATE CONSTRAINT charges_status_check;
ALTER TABLE charges VALIDATE CONSTRAINT given_back_is_not_more_than_taken;
ALTER TABLE charges VALIDATE CONSTRAINT a_wallet_pays_a_part;
