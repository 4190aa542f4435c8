//! Store URLs: a path or `file:PATH`, `postgres://…`, `memory:`.

use crate::exit::Exit;
use counterfoil_core::types::mask::Masked;
use counterfoil_store_postgres::{OpenError, Options, PostgresStore, Reach};
use std::path::PathBuf;

/// The place of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// The directory of an embedded store.
    Embedded(PathBuf),
    /// A PostgreSQL database; the URL may hold a password.
    Postgres(Masked<String>),
    /// Memory of this process, for tests.
    Memory,
}

impl StoreUrl {
    /// Parses a store URL; the refusal of an unknown one lists the known forms.
    pub(crate) fn parse(url: &str) -> Result<StoreUrl, Exit> {
        match url.split_once(':') {
            Some(("memory", "")) => Ok(StoreUrl::Memory),
            Some(("file", path)) if !path.is_empty() => {
                Ok(StoreUrl::Embedded(PathBuf::from(path.strip_prefix("//").unwrap_or(path))))
            }
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(StoreUrl::Postgres(Masked::new(url.to_owned())))
            }
            Some(("dynamodb", _)) => Err(Exit::refused(
                "this build has no DynamoDB store; give a path, file:PATH, postgres://USER@HOST/DATABASE or memory:",
            )),
            Some((scheme, rest)) if rest.starts_with("//") || scheme == "file" || scheme == "memory" => {
                Err(Exit::refused(format!(
                    "this form of store URL is not known (scheme `{scheme}`); give a path, file:PATH, postgres://USER@HOST/DATABASE or memory:"
                )))
            }
            Some(_) | None if url.is_empty() => Err(Exit::refused(
                "the store URL is empty; give a path, file:PATH, postgres://USER@HOST/DATABASE or memory:",
            )),
            Some(_) | None => Ok(StoreUrl::Embedded(PathBuf::from(url))),
        }
    }
}

/// Opens a database. An empty one gets its tables; older tables must be upgraded with `counterfoil
/// migrate`.
pub(crate) async fn open_database(url: &Masked<String>, options: Options) -> Result<PostgresStore, Exit> {
    match PostgresStore::open(url.reveal(), options.clone()).await {
        Err(OpenError::NotMigrated) => {
            counterfoil_store_postgres::migrate(url.reveal(), Reach::Needed).await.map_err(Exit::refused)?;
            PostgresStore::open(url.reveal(), options).await.map_err(Exit::refused)
        }
        opened => opened.map_err(Exit::refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_files() {
        for (url, path) in [
            ("./data", "./data"),
            ("/var/data", "/var/data"),
            ("file:data", "data"),
            ("file:///var/x", "/var/x"),
            ("a:b", "a:b"),
        ] {
            assert_eq!(StoreUrl::parse(url).unwrap(), StoreUrl::Embedded(PathBuf::from(path)), "{url}");
        }
        assert_eq!(StoreUrl::parse("memory:").unwrap(), StoreUrl::Memory);
        let url = "postgres://u:secret@h/d";
        assert_eq!(StoreUrl::parse(url).unwrap(), StoreUrl::Postgres(Masked::new(url.into())));
        assert!(!format!("{:?}", StoreUrl::parse(url).unwrap()).contains("secret"));
    }

    #[test]
    fn unusable_urls_are_refused() {
        for url in ["", "dynamodb://t", "http://x", "file:", "memory:x"] {
            assert!(StoreUrl::parse(url).is_err(), "{url}");
        }
    }
}
