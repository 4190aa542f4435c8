//! Results of searches.

use crate::provider::{Act, HASTY, KEY, PATIENT, Provider, intent, look_up, lookup, settings};
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep};
use counterfoil_gateway::{Gateway, ProviderLookup};
use counterfoil_gateway_stripe::StripeGateway;

const UNCLEAR: LookupResult = LookupResult::Unclear(Cause::Unreadable);

fn page(statuses: &[&str], has_more: bool) -> String {
    let data: Vec<_> =
        (1..).zip(statuses).map(|(number, status)| intent(&format!("pi_{number}"), status)).collect();
    format!(r#"{{"object":"search_result","data":[{}],"has_more":{has_more}}}"#, data.join(","))
}

async fn find(statuses: &[&str], has_more: bool) -> LookupResult {
    Provider::answering(200, &page(statuses, has_more)).await.looked_up().await
}

/// The reference of the approved payment that the search found.
async fn executed(statuses: &[&str]) -> String {
    match find(statuses, false).await {
        LookupResult::Payment(ProviderOutcome::Approved(approval)) => approval.reference,
        other => panic!("{statuses:?}: {other:?}"),
    }
}

#[tokio::test]
async fn an_empty_page_is_nothing() {
    assert_eq!(find(&[], false).await, LookupResult::Nothing);
    assert_eq!(find(&[], true).await, UNCLEAR);
}

#[tokio::test]
async fn one_payment_is_what_its_status_says() {
    assert_eq!(executed(&["succeeded"]).await, "pi_1");
    assert_eq!(executed(&["requires_capture"]).await, "pi_1");
    for status in ["canceled", "requires_payment_method"] {
        let found = find(&[status], false).await;
        assert!(matches!(found, LookupResult::Payment(ProviderOutcome::Declined(_))), "{found:?}");
    }
    let found = find(&["processing"], false).await;
    assert_eq!(found, LookupResult::Payment(ProviderOutcome::Unknown(Cause::Unreadable)));
}

#[tokio::test]
async fn the_only_executed_one_of_several_is_taken() {
    assert_eq!(executed(&["canceled", "succeeded"]).await, "pi_2");
    assert_eq!(executed(&["requires_capture", "requires_payment_method", "canceled"]).await, "pi_1");
}

#[tokio::test]
async fn several_payments_that_may_count_are_reported_as_several() {
    for statuses in [
        &["succeeded", "succeeded"][..],
        &["succeeded", "requires_capture"],
        &["succeeded", "processing"],
        &["canceled", "canceled"],
        &["processing", "processing"],
    ] {
        assert_eq!(find(statuses, false).await, LookupResult::Several, "{statuses:?}");
    }
    assert_eq!(find(&["succeeded"], true).await, LookupResult::Several);
}

#[tokio::test]
async fn a_page_about_another_payment_is_no_answer() {
    let good = page(&["canceled"], false);
    for body in [good.replace("ch_1", "ch_2"), good.replace(r#""counterfoil_payment":"ch_1","#, "")] {
        assert_eq!(Provider::answering(200, &body).await.looked_up().await, UNCLEAR, "{body}");
    }
}

#[tokio::test]
async fn a_search_that_fails_is_unclear() {
    for (status, body, cause) in [
        (200, "{}", Cause::Unreadable),
        (200, r#"{"data":null,"has_more":false}"#, Cause::Unreadable),
        (200, "", Cause::Unreadable),
        (302, "", Cause::Unreadable),
        (400, "{}", Cause::Unreadable),
        (401, "{}", Cause::Unreadable),
        (404, r#"{"error":{"type":"invalid_request_error"}}"#, Cause::Unreadable),
        (409, "{}", Cause::InProgress),
        (429, "{}", Cause::InProgress),
        (503, r#"{"data":[],"has_more":false}"#, Cause::ServerError),
    ] {
        let found = Provider::answering(status, body).await.looked_up().await;
        assert_eq!(found, LookupResult::Unclear(cause), "{status} {body}");
    }
}

#[tokio::test]
async fn a_search_without_an_answer_is_unclear() {
    let silent = Provider::playing(vec![Act::Hang]).await;
    assert_eq!(look_up(&silent.gateway(HASTY)).await, LookupResult::Unclear(Cause::Timeout));
    let rude = Provider::playing(vec![Act::Cut]).await;
    assert_eq!(rude.looked_up().await, LookupResult::Unclear(Cause::Cut));
    let url = format!("stripe+http://{KEY}@provider.invalid:1");
    let nowhere = StripeGateway::new(settings(&url, PATIENT)).unwrap();
    assert_eq!(look_up(&nowhere).await, LookupResult::Unclear(Cause::Cut));
}

#[tokio::test]
async fn a_reference_that_would_change_the_query_is_not_searched_for() {
    let provider = Provider::answering(200, &page(&[], false)).await;
    let gateway = provider.gateway(PATIENT);
    let payment = "ch_1' OR status:'succeeded".to_owned();
    let lookup = ProviderLookup { payment, ..lookup(gateway.binding(), ProviderStep::Charge) };
    assert_eq!(gateway.lookup(lookup).await, UNCLEAR);
    assert_eq!(provider.accepted(), 0);
}
