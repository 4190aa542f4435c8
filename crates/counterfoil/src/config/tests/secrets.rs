use super::super::secret::SecretUrl;
use super::{file, nothing};

const VARIABLE: &str = "COUNTERFOIL_GATEWAY__URL";

#[test]
fn a_credential_is_masked_wherever_settings_are_printed() {
    let settings = nothing()
        .env(VARIABLE, "stripe+http://sk_live_hidden@localhost:8090")
        .env("COUNTERFOIL_STORE__URL", "postgres://app:hidden@db/counterfoil?password=hidden")
        .load();
    let printed = format!("{settings:?} {settings:#?}");
    assert!(!printed.contains("hidden"), "{printed}");
    assert!(printed.contains("stripe+http://***@localhost:8090"), "{printed}");
    assert!(printed.contains("postgres://***@db/counterfoil?***"), "{printed}");
    assert_eq!(settings.gateway.url.map(|url| url.reveal().contains("sk_live_hidden")), Some(true));
}

#[test]
fn the_mask_covers_keys_that_hold_separators() {
    let shown = |url: &str| SecretUrl::new(url).to_string();
    assert_eq!(shown("stripe+http://a@b/c?d@host"), "stripe+http://***@host");
    assert_eq!(shown("./counterfoil-data"), "./counterfoil-data");
    assert_eq!(shown("file:/var/lib/counterfoil"), "file:/var/lib/counterfoil");
}

#[test]
fn a_refused_gateway_url_is_never_repeated() {
    let refusal = "`gateway.url` must be a URL such as `stripe+http://KEY@host:port` (the value is not shown, as it may hold a key).";
    for bad in [
        "hidden",
        "stripe+http://hidden",
        "stripe+http://@hidden",
        "://hidden@hidden",
        "hidden://hidden@",
        "hidden://hidden@:1",
    ] {
        nothing().env(VARIABLE, bad).refused(&[&format!("{VARIABLE}: {refusal}")]);
        nothing().flag("--gateway", "gateway", "url", bad).refused(&[&format!("--gateway: {refusal}")]);
        file(&format!("[gateway]\nurl = \"{bad}\"\n")).refused(&[&format!("FILE:2:7: {refusal}")]);
    }
}

#[test]
fn a_broken_file_is_refused_without_repeating_its_lines() {
    for broken in [
        "[gateway]\nurl = stripe+http://hidden@host\n",
        "[gateway]\nurl = \"stripe+http://hidden@host\n",
        "[gateway]\nurl = 'stripe+http://hidden@host\\'x\n",
        "[gateway]\nurl = \"stripe+http://hidden@host\" hidden\n",
        "[gateway]\nurl = \"stripe+http://a@host\"\nurl = \"stripe+http://hidden@host\"\n",
        "gateway = \"stripe+http://hidden@host\"\n",
        "url = \"stripe+http://hidden@host\"\n",
        "[gateway]\nur = \"stripe+http://hidden@host\"\n",
        "[gateway]\nurl = [\"stripe+http://hidden@host\"]\n",
        "[gateway]\ntimeout_ms = \"stripe+http://hidden@host\"\n",
    ] {
        let problems = file(broken).problems().join("\n");
        assert!(!problems.contains("hidden"), "{broken}\n{problems}");
    }
}
