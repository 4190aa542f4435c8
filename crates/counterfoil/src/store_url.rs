//! Store URLs: a path or `file:PATH`, `memory:`, and the ones other builds will serve.

use crate::exit::Exit;
use std::path::PathBuf;

/// Where everything is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// A directory.
    Embedded(PathBuf),
    /// This process's memory: for tests.
    Memory,
}

impl StoreUrl {
    /// Reads a URL; what it cannot serve is refused with what to do instead.
    pub(crate) fn parse(url: &str) -> Result<StoreUrl, Exit> {
        let later = |name: &str| {
            let name = name.to_owned();
            Err(Exit::refused(format!(
                "this version has no {name} store yet; give a directory (--store ./counterfoil-data) instead"
            )))
        };
        match url.split_once(':') {
            Some(("memory", "")) => Ok(StoreUrl::Memory),
            Some(("file", path)) if !path.is_empty() => {
                Ok(StoreUrl::Embedded(PathBuf::from(path.strip_prefix("//").unwrap_or(path))))
            }
            Some(("postgres" | "postgresql", _)) => later("PostgreSQL"),
            Some(("dynamodb", _)) => later("DynamoDB"),
            Some((scheme, rest)) if rest.starts_with("//") || scheme == "file" || scheme == "memory" => {
                Err(Exit::refused(format!(
                    "the store URL's scheme `{scheme}` with what follows it is not known; give a path, file:PATH or memory:"
                )))
            }
            Some(_) | None if url.is_empty() => {
                Err(Exit::refused("the store URL is empty; give a path, file:PATH or memory:"))
            }
            Some(_) | None => Ok(StoreUrl::Embedded(PathBuf::from(url))),
        }
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
    }

    #[test]
    fn what_cannot_be_served_is_refused() {
        for url in ["", "postgres://u@h/d", "dynamodb://t", "http://x", "file:", "memory:x"] {
            assert!(StoreUrl::parse(url).is_err(), "{url}");
        }
    }
}
