//! The section `[peers]`, whose settings have names chosen by the operator: one URL per peer.

use std::collections::BTreeMap;

use counterfoil_core::types::limits::{PEER_NAME_BYTES_MAX, PEERS_MAX};
use counterfoil_core::types::peer::PeerName;
use counterfoil_gateway::ProviderProfile;

use super::declare::{Entry, Section};
use super::problem::{Problem, quoted};
use super::rule::{CredentialUrl, Raw, Rule};
use super::secret::SecretUrl;
use super::source::Source;

/// The section's name, in files and variables.
pub(super) const SECTION: &str = "peers";

/// Peers by name.
pub(crate) type Peers = BTreeMap<PeerName, SecretUrl>;

/// A peer from one layer.
pub(super) struct GivenPeer {
    pub(super) name: String,
    pub(super) raw: Raw,
    pub(super) source: Source,
}

/// The section, for documentation.
pub(super) fn section() -> Section {
    Section {
        name: SECTION,
        doc: "Other Counterfoil servers, each with a store of its own, whose accounts can be paid: `POST /v1/payouts` with \
              `peer`. Any number of settings, one for each, under names of your own; see peers.md."
            .to_owned(),
        entries: vec![Entry::new(
            SECTION,
            "NAME",
            "Where the peer called `NAME` is, with an API key of it and the id of the account there that it pays from; the key \
             is never printed. A name has up to 32 lower-case letters, digits and `_`. As a flag: `--peer NAME=URL`, once \
             for each.",
            &CredentialUrl::PEER,
        )],
    }
}

/// Combines the peers of all layers, weakest first. A bad peer is refused even if a stronger layer
/// replaces it.
pub(super) fn settle(given: Vec<GivenPeer>, problems: &mut Vec<Problem>) -> Peers {
    let mut peers = Peers::new();
    for GivenPeer { name, raw, source } in given {
        let sentence = match (parse_name(&name), CredentialUrl::PEER.read(&raw)) {
            (Ok(name), Ok(Some(_))) if peers.len() >= PEERS_MAX && !peers.contains_key(&name) => {
                format!("`{SECTION}.{name}` is one too many; a server has at most {PEERS_MAX} peers")
            }
            (Ok(name), Ok(Some(url))) => {
                peers.insert(name, url);
                continue;
            }
            (Err(wrong), _) => wrong,
            (Ok(name), Ok(None)) => format!("`{SECTION}.{name}` must be {}", CredentialUrl::PEER.allowed()),
            (Ok(name), Err(wrong)) => format!("`{SECTION}.{name}` {wrong}"),
        };
        problems.push(Problem { source, sentence });
    }
    peers
}

fn parse_name(text: &str) -> Result<PeerName, String> {
    let Ok(name) = PeerName::parse(text) else {
        // Text in place of a name may be a URL with a key, so do not quote it.
        let shown = if text.contains(['@', ':', '/']) { "a URL".to_owned() } else { quoted(text) };
        return Err(format!(
            "{shown} is not a name for a peer; use 1 to {PEER_NAME_BYTES_MAX} lower-case letters, digits and `_`, the first a letter"
        ));
    };
    // Answers name the provider or peer that executed a payment, so names must be distinct.
    if ProviderProfile::named(text).is_some() {
        return Err(format!("`{name}` is the name of a provider's profile; give the peer another"));
    }
    Ok(name)
}

/// Parses a flag's `NAME=URL`. Without a name nothing is quoted, because the text may hold a key.
pub(super) fn flag(value: &str, source: Source) -> Result<GivenPeer, Problem> {
    match value.split_once('=') {
        Some((name, url)) if !name.contains("://") => {
            Ok(GivenPeer { name: name.to_owned(), raw: Raw::Bare(url.to_owned()), source })
        }
        Some(_) | None => {
            let sentence =
                "a peer is given as NAME=URL (the value is not shown, as it may hold a key)".to_owned();
            Err(Problem { source, sentence })
        }
    }
}
