//! Errors of opening a store, each with advice, and the classification of the server's errors.

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

/// The reason why a store was not opened or migrated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("the store URL does not read ({0}): write postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    BadUrl(String),
    #[error("PostgreSQL cannot be reached ({0}): check that it runs, and the URL's host and port")]
    Unreachable(String),
    #[error(
        "the connection to PostgreSQL cannot be secured ({0}): check sslmode and sslrootcert in the URL, and the server's certificate"
    )]
    Tls(String),
    #[error(
        "PostgreSQL does not accept the login ({0}): check the URL's user and password, and the server's pg_hba.conf"
    )]
    Login(String),
    #[error(
        "there is no such database ({0}): create it with CREATE DATABASE, then run `counterfoil migrate`"
    )]
    NoDatabase(String),
    #[error("PostgreSQL takes no more connections: raise its max_connections, or run fewer servers")]
    Crowded,
    #[error("PostgreSQL {0} is too old: version 15 or newer is needed")]
    TooOld(String),
    #[error(
        "this PostgreSQL server is a standby and takes no writes: give the URL of the primary, or name all hosts in it: HOST,HOST"
    )]
    Standby,
    #[error(
        "this database takes no writes (default_transaction_read_only is on): turn that off, or give another database"
    )]
    ReadOnly,
    /// A setting of the server makes confirmed commits unsafe.
    #[error(
        "this PostgreSQL server runs with {0} = off, so it may lose what it has confirmed: turn it on and restart the server"
    )]
    Unsafe(&'static str),
    #[error("the database has no Counterfoil tables yet: run `counterfoil migrate` first")]
    NotMigrated,
    /// The database has an older schema than this build needs.
    #[error(
        "the database has schema {found}, this release needs {known}: run `counterfoil migrate` first; older servers may go on meanwhile"
    )]
    Behind {
        found: u32,
        /// The version this build needs.
        known: u32,
    },
    /// The database has a newer schema, which no longer serves this build.
    #[error(
        "the database has schema {found}, which no longer serves releases that know up to {known}: run the newer release"
    )]
    Ahead {
        found: u32,
        /// The newest version this build knows.
        known: u32,
    },
    /// The database was made with a different text of a known step.
    #[error(
        "schema step {0} of this database differs from the one in this build, and until the first release such a database is not migrated: make a new database, or run the build that made this one"
    )]
    EditedStep(u32),
    /// The server lacks commits that this process knows of.
    #[error(
        "PostgreSQL has lost commits that it confirmed (the last known is {known}, it has {found}): a standby that lagged was promoted, or an old backup restored; stop all servers, find the lost commits, and reconcile with the provider before starting again"
    )]
    Lost {
        /// The last position this process knows of.
        known: u64,
        /// The last position of the server.
        found: u64,
    },
    /// The server has a different commit at a known position.
    #[error(
        "PostgreSQL has lost commits that it confirmed (at position {known} it has another one): a standby that lagged was promoted, or an old backup restored, and others have committed since; stop all servers, find the lost commits, and reconcile with the provider before starting again"
    )]
    Rewritten {
        /// The last position this process knows of.
        known: u64,
    },
    #[error(
        "this is another Counterfoil database than the one that was opened (its secret differs): check what the URL's host resolves to"
    )]
    Other,
    #[error("the store cannot be opened: {0}")]
    Failed(String),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        let why = reason(&error);
        let Some(code) = error.code() else {
            let tls = ["tls", "TLS", "certificate"].iter().any(|word| why.contains(word));
            return if tls { OpenError::Tls(why) } else { OpenError::Unreachable(why) };
        };
        match code.code() {
            "28000" | "28P01" => OpenError::Login(why),
            "3D000" => OpenError::NoDatabase(why),
            "53300" => OpenError::Crowded,
            "57P03" => OpenError::Unreachable(why),
            "25006" => OpenError::ReadOnly,
            _ => OpenError::Failed(why),
        }
    }
}

/// The error as text for operators: the server's message with its code, or the cause of a broken
/// connection.
pub(crate) fn reason(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", said.message(), said.code().code());
    }
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !reason.contains(&cause_text) {
            reason = format!("{reason}: {cause_text}");
        }
        source = cause.source();
    }
    reason
}

/// The cause of an error inside a transaction. Every error except a lost connection has rolled the
/// transaction back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Another writer came first. A retry may succeed.
    Race,
    /// Another transaction holds a lock for too long.
    Holder,
    /// One of the sets breaks a rule of the tables.
    Set,
    /// The server or its machine failed.
    World,
    /// The transaction had failed before; an earlier statement has the cause.
    Earlier,
    /// The connection is lost and the outcome unknown.
    Connection,
}

pub(crate) fn blame(error: &Error) -> Blame {
    error.as_db_error().map_or(Blame::Connection, |said| blamed(said.code(), said.parsed_severity()))
}

fn blamed(code: &SqlState, severity: Option<Severity>) -> Blame {
    // The server process ends. Nothing was rolled back: the commit may be in the write-ahead log.
    if matches!(severity, Some(Severity::Fatal | Severity::Panic)) {
        return Blame::Connection;
    }
    if *code == SqlState::IN_FAILED_SQL_TRANSACTION {
        return Blame::Earlier;
    }
    match code.code() {
        // Serialization failure, deadlock, duplicate key, wrong row count.
        "40001" | "40P01" | "23505" | "CF001" => Blame::Race,
        "55P03" => Blame::Holder,
        // Terminations and crashes end the connection right after this message.
        "57P01" | "57P02" | "57P03" => Blame::Connection,
        code => match code.get(..2) {
            Some("22" | "23" | "54" | "CF" | "P0") => Blame::Set,
            _ => Blame::World,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fatal_errors_leave_the_outcome_open() {
        for code in ["53100", "58030", "XX000", "57014", "40001", "23505"] {
            let code = SqlState::from_code(code);
            for severity in [Severity::Fatal, Severity::Panic] {
                assert_eq!(blamed(&code, Some(severity)), Blame::Connection, "{code:?}");
            }
            assert_ne!(blamed(&code, Some(Severity::Error)), Blame::Connection, "{code:?}");
        }
    }
}
