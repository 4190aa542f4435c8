use super::super::Settings;
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

const SECRETS: &str = "COUNTERFOIL_GATEWAY__WEBHOOK_SECRETS";

#[test]
fn webhook_secrets_are_a_list_or_comma_separated_and_never_shown() {
    let one = "whsec_hidden_0123456789";
    let revealed = |settings: Settings| -> Vec<String> {
        let printed = format!("{settings:?} {settings:#?}");
        assert!(!printed.contains("hidden"), "{printed}");
        settings.gateway.webhook_secrets.iter().map(|secret| secret.reveal().clone()).collect()
    };
    assert_eq!(revealed(nothing().load()), [""; 0]);
    assert_eq!(revealed(nothing().env(SECRETS, one).load()), [one]);
    assert_eq!(revealed(nothing().env(SECRETS, &format!("{one}, {one}2")).load()), [one, &format!("{one}2")]);
    assert_eq!(revealed(file(&format!("[gateway]\nwebhook_secrets = '{one}'\n")).load()), [one]);
    let list = format!("[gateway]\nwebhook_secrets = ['{one}', \"{one}2\"]\n");
    assert_eq!(revealed(file(&list).load()), [one, &format!("{one}2")]);
    assert_eq!(
        revealed(file(&list).env(SECRETS, one).load()),
        [one],
        "the stronger layer gives the whole list"
    );
}

#[test]
fn a_refused_secret_is_never_repeated() {
    let refusal = "`gateway.webhook_secrets` must be 1 to 4 secrets of 16 to 255 visible ASCII characters, as a list or with commas between them (the value is not shown).";
    let (good, long) = ("whsec_hidden_0123456789", "hidden".repeat(50));
    let many = [good; 5].join(",");
    for bad in [
        "",
        "hidden",
        "whsec_hidden é 0123456789",
        &format!("{good},"),
        &format!("{good},hidden"),
        &many,
        &long,
    ] {
        nothing().env(SECRETS, bad).refused(&[&format!("{SECRETS}: {refusal}")]);
        file(&format!("[gateway]\nwebhook_secrets = '{bad}'\n")).refused(&[&format!("FILE:2:19: {refusal}")]);
    }
    for bad in [
        "[]",
        "['hidden']",
        "7",
        "['whsec_hidden_0123456789', 7]",
        "[['whsec_hidden_0123456789']]",
        "{ a = 'hidden' }",
        "true",
    ] {
        file(&format!("[gateway]\nwebhook_secrets = {bad}\n")).refused(&[&format!("FILE:2:19: {refusal}")]);
    }
}
