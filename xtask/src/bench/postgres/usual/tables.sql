-- Tables of a charge in the usual form, under the same promise: the same rows, an index for each
-- lookup, and the product's rules as constraints.

CREATE TABLE tenants (
    id   BIGINT PRIMARY KEY,
    name TEXT   NOT NULL UNIQUE
);

CREATE TABLE api_keys (
    digest     BYTEA  PRIMARY KEY,
    tenant     BIGINT NOT NULL REFERENCES tenants,
    scopes     TEXT   NOT NULL,
    revoked_at TIMESTAMPTZ
);

CREATE TABLE idempotency_keys (
    tenant      BIGINT NOT NULL,
    key         TEXT   NOT NULL,
    fingerprint BYTEA  NOT NULL CHECK (octet_length(fingerprint) = 32),
    charge      BIGINT NOT NULL,
    state       TEXT   NOT NULL CHECK (state IN ('in_flight', 'completed', 'failed')),
    fence       BIGINT NOT NULL CHECK (fence >= 0),
    lease_until TIMESTAMPTZ NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    status      INT,
    body        BYTEA,
    PRIMARY KEY (tenant, key),
    CHECK (state = 'in_flight' OR (status IS NOT NULL AND body IS NOT NULL))
);
-- Finds answers older than their window.
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE charges (
    id                 BIGINT PRIMARY KEY,
    tenant             BIGINT NOT NULL,
    amount             BIGINT NOT NULL CHECK (amount > 0),
    currency           TEXT   NOT NULL,
    payment_method     TEXT   NOT NULL,
    destination        BIGINT NOT NULL,
    description        TEXT,
    metadata           JSONB  NOT NULL,
    status             TEXT   NOT NULL CHECK (status IN ('processing', 'succeeded', 'failed')),
    captured           BIGINT NOT NULL DEFAULT 0 CHECK (captured BETWEEN 0 AND amount),
    provider           TEXT   NOT NULL,
    provider_reference TEXT,
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX charges_by_tenant ON charges (tenant, id);

CREATE TABLE outbox (
    charge     BIGINT PRIMARY KEY,
    endpoint   TEXT   NOT NULL,
    attempts   INT    NOT NULL DEFAULT 0,
    due_at     TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX outbox_by_due ON outbox (due_at);

CREATE TABLE audit_log (
    id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    charge BIGINT NOT NULL,
    tenant BIGINT NOT NULL,
    kind   TEXT   NOT NULL,
    detail TEXT   NOT NULL,
    at     TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX audit_log_by_charge ON audit_log (charge);

CREATE TABLE transactions (
    id         BIGINT PRIMARY KEY,
    tenant     BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX transactions_by_tenant ON transactions (tenant, id);

CREATE TABLE entries (
    transaction BIGINT NOT NULL REFERENCES transactions,
    leg         INT    NOT NULL CHECK (leg >= 0),
    account     BIGINT NOT NULL,
    side        TEXT   NOT NULL CHECK (side IN ('debit', 'credit')),
    amount      BIGINT NOT NULL CHECK (amount > 0),
    currency    TEXT   NOT NULL,
    at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (transaction, leg)
);
CREATE INDEX entries_by_account ON entries (account, transaction);

-- A transaction balances when it commits.
CREATE FUNCTION balanced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM entries WHERE transaction = NEW.transaction GROUP BY currency
               HAVING sum(CASE side WHEN 'debit' THEN -amount ELSE amount END) <> 0) THEN
        RAISE EXCEPTION 'transaction % does not balance', NEW.transaction;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION balanced();

-- History is append-only, and settled rows are final. A legal write runs none of these functions.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: this is not allowed', TG_TABLE_NAME;
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON transactions FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER only_forward BEFORE UPDATE ON idempotency_keys FOR EACH ROW
    WHEN (OLD.state <> 'in_flight' OR NEW.fence < OLD.fence
       OR (NEW.tenant, NEW.key, NEW.fingerprint, NEW.charge) IS DISTINCT FROM (OLD.tenant, OLD.key, OLD.fingerprint, OLD.charge))
    EXECUTE FUNCTION refuse();
CREATE TRIGGER only_forward BEFORE UPDATE ON charges FOR EACH ROW
    WHEN (OLD.status <> 'processing' OR NEW.captured < OLD.captured
       OR (NEW.id, NEW.tenant, NEW.amount, NEW.currency, NEW.payment_method, NEW.destination)
          IS DISTINCT FROM (OLD.id, OLD.tenant, OLD.amount, OLD.currency, OLD.payment_method, OLD.destination))
    EXECUTE FUNCTION refuse();

INSERT INTO tenants VALUES (1, 'bench');
