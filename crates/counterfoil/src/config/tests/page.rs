use super::super::{explain, reference};

const PAGE: &str = include_str!("../../../../../docs/configuration.md");

#[test]
fn the_reference_page_matches_the_table() {
    let expected = reference();
    assert!(
        PAGE == expected,
        "docs/configuration.md differs from the table; its text must be:\n\n{expected}"
    );
}

#[test]
fn a_setting_explains_itself() {
    let text = explain("idempotency.wait_ms").expect("a setting of the table");
    assert_eq!(
        text,
        "idempotency.wait_ms\n  \
         How long a retry waits for the first request to finish before it is answered 409, in milliseconds.\n  \
         default: `5000`\n  allowed: a whole number from 0 to 60000\n  \
         file: [idempotency] wait_ms = …\n  environment: COUNTERFOIL_IDEMPOTENCY__WAIT_MS\n"
    );
}

#[test]
fn an_unknown_setting_is_answered_with_a_suggestion() {
    let guess = |asked| explain(asked).expect_err("not a setting");
    assert_eq!(
        guess("idempotency.lease"),
        "`idempotency.lease` is not a setting; did you mean `idempotency.lease_ms`?"
    );
    assert_eq!(guess("lease_ms"), "`lease_ms` is not a setting; did you mean `idempotency.lease_ms`?");
}
