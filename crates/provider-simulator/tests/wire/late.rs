//! Requests that arrive long after their client gave up.

use std::pin::pin;

use counterfoil_provider_simulator::Faults;

use crate::provider::{Lost, Provider};

#[tokio::test]
async fn a_dropped_request_is_executed_late_under_its_key() {
    let provider = Provider::start();
    provider.faults(Faults { drop_before: 1.0, late_delivery_ms: 1000, ..Faults::default() });
    assert!(matches!(provider.charge("k1").await, Err(Lost)));
    provider.faults(Faults::default());
    assert_eq!(provider.truth(), []);
    assert_eq!(provider.running.simulator().late_pending(), 1);
    provider.clock.advance(1000);
    provider.late_deliveries_done().await;
    assert_eq!(provider.truth(), [("charge", 1250)]);
    assert_eq!(provider.running.effects()[0].key.as_deref(), Some("k1"));
    assert!(provider.charge("k1").await.unwrap().replayed);
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_late_request_gives_way_to_a_retry_that_was_faster() {
    let provider = Provider::start();
    provider.faults(Faults { drop_before: 1.0, late_delivery_ms: 1000, ..Faults::default() });
    assert!(matches!(provider.charge("k1").await, Err(Lost)));
    provider.faults(Faults::default());
    assert!(!provider.charge("k1").await.unwrap().replayed);
    provider.clock.advance(1000);
    provider.late_deliveries_done().await;
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_late_request_whose_key_was_forgotten_is_executed_again() {
    let provider = Provider::start();
    provider.faults(Faults { drop_before: 1.0, late_delivery_ms: 1000, ..Faults::default() });
    assert!(matches!(provider.charge("k1").await, Err(Lost)));
    provider.faults(Faults { dedup_window_ms: 1000, ..Faults::default() });
    provider.charge("k1").await.unwrap();
    provider.clock.advance(1000);
    provider.late_deliveries_done().await;
    assert_eq!(provider.truth(), [("charge", 1250), ("charge", 1250)]);
}

#[tokio::test]
async fn a_hung_request_is_executed_late_too() {
    let provider = Provider::start();
    provider.faults(Faults { hang_after: 1.0, late_delivery_ms: 1000, ..Faults::default() });
    let mut hung = pin!(provider.charge("k1"));
    tokio::select! {
        got = &mut hung => panic!("answered: {got:?}"),
        // One wait for the delivery, one for the silence.
        () = provider.clock.waits_begun(2) => {}
    }
    assert_eq!(provider.truth(), []);
    provider.clock.advance(1000);
    provider.late_deliveries_done().await;
    assert_eq!(provider.truth(), [("charge", 1250)]);
    assert!(provider.charge("k1").await.unwrap().replayed);
}

#[tokio::test]
async fn a_reset_loses_late_requests() {
    let provider = Provider::start();
    provider.faults(Faults { drop_before: 1.0, late_delivery_ms: 1000, ..Faults::default() });
    assert!(matches!(provider.charge("k1").await, Err(Lost)));
    provider.running.simulator().reset();
    provider.clock.advance(1000);
    provider.late_deliveries_done().await;
    assert_eq!(provider.truth(), []);
}
