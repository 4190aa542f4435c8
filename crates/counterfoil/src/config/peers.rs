//! The one section whose settings have names that nobody knows beforehand: `[peers]`, a URL for each peer.

use std::collections::BTreeMap;

use counterfoil_core::types::limits::{PEER_NAME_BYTES_MAX, PEERS_MAX};
use counterfoil_core::types::peer::PeerName;
use counterfoil_gateway::ProviderProfile;

use super::declare::{Entry, Section};
use super::problem::{Problem, quoted};
use super::rule::{PeerUrl, Raw, Rule};
use super::secret::SecretUrl;
use super::source::Source;

/// What the section is called, in files and in variables.
pub(super) const SECTION: &str = "peers";

/// Every peer by its name.
pub(crate) type Peers = BTreeMap<PeerName, SecretUrl>;

/// A peer as one layer gave it.
pub(super) struct Given {
    pub(super) name: String,
    pub(super) raw: Raw,
    pub(super) source: Source,
}

/// The section, for people.
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
            &PeerUrl,
        )],
    }
}

/// The peers of all layers, weakest first. A bad one in a weaker layer is a problem even if overruled.
pub(super) fn settle(given: Vec<Given>, problems: &mut Vec<Problem>) -> Peers {
    let mut peers = Peers::new();
    for Given { name, raw, source } in given {
        let sentence = match (named(&name), PeerUrl.read(&raw)) {
            (Ok(name), Ok(Some(_))) if peers.len() >= PEERS_MAX && !peers.contains_key(&name) => {
                format!("`{SECTION}.{name}` is one too many; a server has at most {PEERS_MAX} peers")
            }
            (Ok(name), Ok(Some(url))) => {
                peers.insert(name, url);
                continue;
            }
            (Err(wrong), _) => wrong,
            (Ok(name), Ok(None)) => format!("`{SECTION}.{name}` must be {}", PeerUrl.allowed()),
            (Ok(name), Err(wrong)) => format!("`{SECTION}.{name}` {wrong}"),
        };
        problems.push(Problem { source, sentence });
    }
    peers
}

fn named(text: &str) -> Result<PeerName, String> {
    let Ok(name) = PeerName::parse(text) else {
        // What stands where a name should may be the URL, with its key.
        let told = if text.contains(['@', ':', '/']) { "a URL".to_owned() } else { quoted(text) };
        return Err(format!(
            "{told} is no name for a peer; use 1 to {PEER_NAME_BYTES_MAX} lower-case letters, digits and `_`, the first a letter"
        ));
    };
    // Answers name who executed a payment, and each name means one.
    if ProviderProfile::named(text).is_some() {
        return Err(format!("`{name}` is the name of a provider's profile; give the peer another"));
    }
    Ok(name)
}

/// A flag's `NAME=URL`. Without a name nothing of it is shown, as it may hold a key.
pub(super) fn flag(value: &str, source: Source) -> Result<Given, Problem> {
    match value.split_once('=') {
        Some((name, url)) if !name.contains("://") => {
            Ok(Given { name: name.to_owned(), raw: Raw::Bare(url.to_owned()), source })
        }
        Some(_) | None => {
            let sentence =
                "a peer is given as NAME=URL (the value is not shown, as it may hold a key)".to_owned();
            Err(Problem { source, sentence })
        }
    }
}
