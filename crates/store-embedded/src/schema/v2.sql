-- Format 2: the ledger. Charges captured before it get their postings in `backfill.rs`, in the same transaction.

ALTER TABLE claims ADD COLUMN makes TEXT NOT NULL DEFAULT 'charge';
ALTER TABLE tenants DROP COLUMN main_account;

CREATE TABLE accounts (
    id         INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    code       TEXT    NOT NULL,
    asset      TEXT    NOT NULL,
    normal     TEXT    NOT NULL CHECK (normal = 'debit' OR normal = 'credit'),
    floor      INTEGER,
    cap        INTEGER,
    shards     INTEGER NOT NULL,
    widest     INTEGER NOT NULL,
    metadata   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revision   INTEGER NOT NULL
) STRICT;
CREATE INDEX accounts_by_tenant ON accounts (tenant);

CREATE TABLE account_names (
    tenant  INTEGER NOT NULL,
    code    TEXT    NOT NULL,
    account INTEGER NOT NULL,
    PRIMARY KEY (tenant, code)
) STRICT, WITHOUT ROWID;

CREATE TABLE assets (
    tenant     INTEGER NOT NULL,
    code       TEXT    NOT NULL,
    exponent   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, code)
) STRICT, WITHOUT ROWID;

CREATE TABLE balances (
    account  INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    posted   INTEGER NOT NULL,
    outgoing INTEGER NOT NULL CHECK (outgoing >= 0),
    incoming INTEGER NOT NULL CHECK (incoming >= 0),
    floor    INTEGER,
    cap      INTEGER,
    revision INTEGER NOT NULL,
    PRIMARY KEY (account, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal_transactions (
    id       INTEGER PRIMARY KEY,
    tenant   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    about    INTEGER,
    metadata TEXT    NOT NULL,
    legs     INTEGER NOT NULL
) STRICT;
CREATE INDEX journal_transactions_by_tenant ON journal_transactions (tenant);

CREATE TABLE journal_entries (
    transaction_id INTEGER NOT NULL,
    leg            INTEGER NOT NULL,
    account        INTEGER NOT NULL,
    side           TEXT    NOT NULL CHECK (side = 'debit' OR side = 'credit'),
    layer          TEXT    NOT NULL CHECK (layer = 'posted' OR layer = 'pending' OR layer = 'released'),
    amount         INTEGER NOT NULL CHECK (amount > 0),
    asset          TEXT    NOT NULL,
    position       INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    PRIMARY KEY (transaction_id, leg)
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_by_account ON journal_entries (account, position, transaction_id, leg);

CREATE TABLE reversals (
    original  INTEGER PRIMARY KEY,
    undone_by INTEGER NOT NULL
) STRICT;

CREATE TABLE holds (
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    from_account  INTEGER NOT NULL,
    to_account    INTEGER NOT NULL,
    amount        INTEGER NOT NULL CHECK (amount > 0),
    asset         TEXT    NOT NULL,
    expires_at    INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    posted_amount INTEGER,
    ended_by      INTEGER,
    metadata      TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    revision      INTEGER NOT NULL
) STRICT;
CREATE INDEX holds_by_deadline ON holds (expires_at) WHERE state = 'pending';

CREATE TABLE snapshots (
    account         INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    debits          BLOB    NOT NULL CHECK (length(debits) = 16),
    credits         BLOB    NOT NULL CHECK (length(credits) = 16),
    debits_pending  BLOB    NOT NULL CHECK (length(debits_pending) = 16),
    credits_pending BLOB    NOT NULL CHECK (length(credits_pending) = 16),
    entries         INTEGER NOT NULL,
    PRIMARY KEY (account, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
    reader   TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What holds against raw SQL too. The entries of a transaction come first; the transaction then closes over them, if
-- they balance, and nothing can be added to it.

CREATE TRIGGER journal_transactions_balance BEFORE INSERT ON journal_transactions
BEGIN
    SELECT CASE
        WHEN EXISTS (SELECT 1 FROM journal_transactions WHERE id = NEW.id)
        THEN RAISE(FAIL, 'the journal is append-only')
        -- An id that SQLite is left to choose reads as -1 here: its entries could not be looked at.
        WHEN NEW.id < 0 OR NEW.legs < 2
          OR NEW.legs <> (SELECT count(*) FROM journal_entries WHERE transaction_id = NEW.id)
        THEN RAISE(FAIL, 'a transaction has an id and at least two entries, as many as it says, all written before it')
        WHEN EXISTS (SELECT 1 FROM journal_entries WHERE transaction_id = NEW.id GROUP BY asset, layer
                     HAVING sum(CASE side WHEN 'debit' THEN amount ELSE -amount END) <> 0)
        THEN RAISE(FAIL, 'the debits and credits of a transaction are equal in every asset and layer')
    END;
END;
CREATE TRIGGER journal_transactions_are_not_rewritten BEFORE UPDATE ON journal_transactions
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_transactions_are_kept BEFORE DELETE ON journal_transactions
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_entries_come_first BEFORE INSERT ON journal_entries
WHEN EXISTS (SELECT 1 FROM journal_transactions WHERE id = NEW.transaction_id)
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_entries_are_not_rewritten BEFORE UPDATE ON journal_entries
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER journal_entries_are_kept BEFORE DELETE ON journal_entries
BEGIN
    SELECT RAISE(FAIL, 'the journal is append-only');
END;
CREATE TRIGGER reversals_are_not_rewritten BEFORE UPDATE ON reversals
BEGIN
    SELECT RAISE(FAIL, 'reversals are append-only');
END;
CREATE TRIGGER reversals_are_kept BEFORE DELETE ON reversals
BEGIN
    SELECT RAISE(FAIL, 'reversals are append-only');
END;
CREATE TRIGGER reversals_are_not_replaced BEFORE INSERT ON reversals
WHEN EXISTS (SELECT 1 FROM reversals WHERE original = NEW.original)
BEGIN
    SELECT RAISE(FAIL, 'reversals are append-only');
END;
CREATE TRIGGER account_names_are_not_rewritten BEFORE UPDATE ON account_names
BEGIN
    SELECT RAISE(FAIL, 'the names of accounts are append-only');
END;
CREATE TRIGGER account_names_are_kept BEFORE DELETE ON account_names
BEGIN
    SELECT RAISE(FAIL, 'the names of accounts are append-only');
END;
CREATE TRIGGER account_names_are_not_replaced BEFORE INSERT ON account_names
WHEN EXISTS (SELECT 1 FROM account_names WHERE tenant = NEW.tenant AND code = NEW.code)
BEGIN
    SELECT RAISE(FAIL, 'the names of accounts are append-only');
END;
CREATE TRIGGER assets_are_not_rewritten BEFORE UPDATE ON assets
BEGIN
    SELECT RAISE(FAIL, 'assets are append-only');
END;
CREATE TRIGGER assets_are_kept BEFORE DELETE ON assets
BEGIN
    SELECT RAISE(FAIL, 'assets are append-only');
END;
CREATE TRIGGER assets_are_not_replaced BEFORE INSERT ON assets
WHEN EXISTS (SELECT 1 FROM assets WHERE tenant = NEW.tenant AND code = NEW.code)
BEGIN
    SELECT RAISE(FAIL, 'assets are append-only');
END;
CREATE TRIGGER accounts_keep_their_terms
BEFORE UPDATE OF id, tenant, code, asset, normal, floor, cap, metadata, created_at ON accounts
BEGIN
    SELECT RAISE(FAIL, 'what an account was opened with never changes, only its shards do');
END;
CREATE TRIGGER accounts_are_kept BEFORE DELETE ON accounts
BEGIN
    SELECT RAISE(FAIL, 'accounts are never removed');
END;
CREATE TRIGGER accounts_are_not_replaced BEFORE INSERT ON accounts
WHEN EXISTS (SELECT 1 FROM accounts WHERE id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'accounts are never removed');
END;
CREATE TRIGGER balances_only_move_forward BEFORE UPDATE ON balances
WHEN NEW.revision <= OLD.revision OR NEW.account <> OLD.account OR NEW.shard <> OLD.shard
BEGIN
    SELECT RAISE(FAIL, 'a balance only moves forward: its revision grows, and it stays with its account and shard');
END;
CREATE TRIGGER balances_are_kept BEFORE DELETE ON balances
BEGIN
    SELECT RAISE(FAIL, 'balances are never removed');
END;
CREATE TRIGGER balances_are_not_replaced BEFORE INSERT ON balances
WHEN EXISTS (SELECT 1 FROM balances WHERE account = NEW.account AND shard = NEW.shard)
BEGIN
    SELECT RAISE(FAIL, 'a balance that is there is updated, not inserted');
END;
CREATE TRIGGER holds_end_once BEFORE UPDATE ON holds
WHEN OLD.state <> 'pending' OR NEW.state = 'pending' OR NEW.revision <= OLD.revision
BEGIN
    SELECT RAISE(FAIL, 'a hold ends once, and its revision grows');
END;
CREATE TRIGGER holds_keep_their_terms
BEFORE UPDATE OF id, tenant, from_account, to_account, amount, asset, expires_at, metadata, created_at ON holds
BEGIN
    SELECT RAISE(FAIL, 'what a hold was made for never changes');
END;
CREATE TRIGGER holds_are_kept BEFORE DELETE ON holds
BEGIN
    SELECT RAISE(FAIL, 'holds are never removed');
END;
CREATE TRIGGER holds_are_not_replaced BEFORE INSERT ON holds
WHEN EXISTS (SELECT 1 FROM holds WHERE id = NEW.id)
BEGIN
    SELECT RAISE(FAIL, 'holds are never removed');
END;
