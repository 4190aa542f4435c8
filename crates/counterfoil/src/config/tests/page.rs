use super::super::{explain, reference};

const PAGE: &str = include_str!("../../../../../docs/configuration.md");

#[test]
fn the_reference_page_is_in_step_with_the_table() {
    let expected = reference();
    assert!(PAGE == expected, "docs/configuration.md is out of step; its text has to be:\n\n{expected}");
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
fn an_unknown_setting_is_not_explained_but_guessed() {
    let guess = |asked| explain(asked).expect_err("not a setting");
    assert_eq!(
        guess("idempotency.lease"),
        "`idempotency.lease` is not a setting; did you mean `idempotency.lease_ms`?"
    );
    assert_eq!(guess("lease_ms"), "`lease_ms` is not a setting; did you mean `idempotency.lease_ms`?");
}
