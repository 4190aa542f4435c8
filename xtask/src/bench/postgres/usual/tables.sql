-- What a charge needs, as it is usually kept: no rules beyond keys, one index for each way it is looked up.

CREATE TABLE idempotency_keys (
    tenant      BIGINT NOT NULL,
    key         TEXT   NOT NULL,
    fingerprint BYTEA  NOT NULL,
    charge      BIGINT NOT NULL,
    state       TEXT   NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    status      INT,
    body        BYTEA,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE charges (
    id             BIGINT PRIMARY KEY,
    tenant         BIGINT NOT NULL,
    amount         BIGINT NOT NULL,
    currency       TEXT   NOT NULL,
    payment_method TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX charges_by_tenant ON charges (tenant, id);

CREATE TABLE outbox (
    charge   BIGINT PRIMARY KEY,
    endpoint TEXT   NOT NULL,
    due_at   TIMESTAMPTZ NOT NULL
);
CREATE INDEX outbox_by_due ON outbox (due_at);

CREATE TABLE audit_log (
    id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    charge BIGINT NOT NULL,
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
    transaction BIGINT NOT NULL,
    leg         INT    NOT NULL,
    account     BIGINT NOT NULL,
    side        TEXT   NOT NULL,
    amount      BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    PRIMARY KEY (transaction, leg)
);
CREATE INDEX entries_by_account ON entries (account, transaction);
