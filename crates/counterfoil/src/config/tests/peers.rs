use super::{Given, file, nothing};

const EU: &str = "counterfoil+https://sk_hidden@eu.example.com:8443/ac_1";
const US: &str = "counterfoil+http://sk_hidden@10.0.0.2:8080/ac_2";

fn flag(given: Given, value: &str) -> Given {
    given.flag("--peer", "peers", "NAME", value)
}

#[test]
fn bad_names_and_urls_of_peers_are_refused_without_showing_the_key() {
    let url = "must be a URL such as `counterfoil+https://KEY@host:port/ac_…` (the value is not shown, as it may hold a key).";
    file("[peers]\neu = \"https://hidden\"\n").refused(&[&format!("FILE:2:6: `peers.eu` {url}")]);
    file("[peers]\neu = 7\n").refused(&["FILE:2:6: `peers.eu` must be a string, not an integer."]);
    file("[peers.eu]\nurl = \"counterfoil+http://hidden@host/ac_1\"\n")
        .refused(&["FILE:1:1: `peers.eu` must be a string, not a table."]);
    file("peers = \"counterfoil+http://hidden@host/ac_1\"\n")
        .refused(&["FILE:1:1: `peers` must be a section `[peers]`, not a string."]);
    nothing()
        .env("COUNTERFOIL_PEERS__EU", "hidden")
        .refused(&[&format!("COUNTERFOIL_PEERS__EU: `peers.eu` {url}")]);
    let name =
        "is not a name for a peer; use 1 to 32 lower-case letters, digits and `_`, the first a letter.";
    file(&format!("[peers]\neu-west = \"{EU}\"\n")).refused(&[&format!("FILE:2:11: `eu-west` {name}")]);
    nothing().env("COUNTERFOIL_PEERS__", EU).refused(&[&format!("COUNTERFOIL_PEERS__: `` {name}")]);
    flag(nothing(), &format!("1={EU}")).refused(&[&format!("--peer: `1` {name}")]);
    let form = "--peer: a peer is given as NAME=URL (the value is not shown, as it may hold a key).";
    for bare in ["hidden", EU, "counterfoil+http://hidden=@host/ac_1"] {
        flag(nothing(), bare).refused(&[form]);
    }
    for swapped in ["sk_hidden@eu.example.com/ac_1=eu", "sk:hidden=eu"] {
        flag(nothing(), swapped).refused(&[&format!("--peer: a URL {name}")]);
    }
    for taken in ["stripe", "counterfoil"] {
        flag(nothing(), &format!("{taken}={EU}")).refused(&[&format!(
            "--peer: `{taken}` is the name of a provider's profile; give the peer another."
        )]);
    }
}

#[test]
fn peers_come_from_every_layer_and_the_strongest_wins() {
    let given = file(&format!("[peers]\neu = \"{US}\"\nasia = \"{US}\"\n")).env("COUNTERFOIL_PEERS__EU", EU);
    let settings = flag(given, &format!("us={US}")).load();
    let peers: Vec<_> = settings.peers.iter().map(|(name, url)| (name.as_str(), url.reveal())).collect();
    assert_eq!(peers, [("asia", US), ("eu", EU), ("us", US)]);
    let printed = format!("{settings:?}");
    assert!(!printed.contains("hidden"), "{printed}");
    assert!(printed.contains("counterfoil+http://***@10.0.0.2:8080/ac_2"), "{printed}");
    assert!(nothing().load().peers.is_empty());
}

#[test]
fn a_hundred_peers_are_enough() {
    let many = |count: usize| {
        let mut given = nothing();
        for number in 0..count {
            given = flag(given, &format!("p{number}={US}"));
        }
        given
    };
    assert_eq!(many(100).load().peers.len(), 100);
    assert_eq!(flag(many(100), &format!("p7={EU}")).load().peers.len(), 100, "the same again is no more");
    many(101).refused(&["--peer: `peers.p100` is one too many; a server has at most 100 peers."]);
}

#[test]
fn a_misspelt_section_is_answered_with_a_suggestion() {
    file(&format!("[peer]\neu = \"{EU}\"\n"))
        .refused(&["FILE:1:2: `peer` is not a section; did you mean `[peers]`?"]);
}
