//! A process that is stopped during a call and continues after its deadline. Everything runs on one
//! thread, so blocking it stops the connector as a signal would, at a moment chosen by the test.

use crate::provider::{KEY, call, charge, intent, next_request, reply, settings};
use counterfoil_core::payments::provider::{Cause, ProviderOutcome};
use counterfoil_gateway::Gateway;
use counterfoil_gateway_stripe::StripeGateway;
use std::future::Future;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::thread::sleep;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(1);

fn listening() -> (TcpListener, StripeGateway) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("stripe+http://{KEY}@{}", listener.local_addr().unwrap());
    (listener, StripeGateway::new(settings(&url, TIMEOUT)).unwrap())
}

/// Polls the call once, then blocks the thread until the deadline has passed.
async fn begin_and_oversleep(call: Pin<&mut impl Future<Output = ProviderOutcome>>) {
    tokio::select! {
        biased;
        outcome = call => panic!("{outcome:?} before anything could be answered"),
        () = std::future::ready(()) => sleep(TIMEOUT),
    }
}

/// Answers the first request, then returns every byte received until the connection closes.
async fn answer_once(mut stream: TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    next_request(&mut stream, &mut read).await.unwrap();
    stream.write_all(&reply(200, "", &intent("pi_1", "succeeded"))).await.unwrap();
    stream.read_to_end(&mut read).await.unwrap();
    read
}

/// A connector with one idle connection, and the bytes that arrive on it from now on.
async fn connected() -> (TcpListener, StripeGateway, tokio::task::JoinHandle<Vec<u8>>) {
    let (listener, gateway) = listening();
    let accepting = tokio::net::TcpListener::from_std({
        let listener = listener.try_clone().unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    })
    .unwrap();
    let arriving = tokio::spawn(async move { answer_once(accepting.accept().await.unwrap().0).await });
    let outcome = charge(&gateway).await;
    assert!(matches!(outcome, ProviderOutcome::Approved(_)), "{outcome:?}");
    (listener, gateway, arriving)
}

/// The listener's queue is empty: no second connection was made.
fn assert_no_other_connection(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// On an existing connection, a request is sent in the first poll of its call.
#[tokio::test]
async fn a_request_whose_process_sleeps_before_taking_its_connection_is_not_sent() {
    let (listener, gateway, arriving) = connected().await;
    let call = gateway.call(call(gateway.binding()));
    sleep(TIMEOUT);
    assert_eq!(call.await, ProviderOutcome::NotSent);
    drop(gateway);
    assert_eq!(String::from_utf8(arriving.await.unwrap()).unwrap(), "", "not even a head");
    assert_no_other_connection(&listener);
}

#[tokio::test]
async fn a_request_whose_process_sleeps_while_connecting_is_not_sent() {
    let (listener, gateway) = listening();
    {
        let mut call = pin!(charge(&gateway));
        begin_and_oversleep(call.as_mut()).await;
        assert_eq!(call.await, ProviderOutcome::NotSent);
    }
    // The kernel accepted the connection meanwhile, so everything sent can be read to the end.
    let arrived = tokio::task::spawn_blocking(move || {
        let mut arrived = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
        arrived
    });
    drop(gateway);
    assert_eq!(String::from_utf8(arrived.await.unwrap()).unwrap(), "", "not even a head");
}

#[tokio::test]
async fn the_deadline_starts_at_the_call_not_at_its_first_poll() {
    let (listener, gateway) = listening();
    let call = gateway.call(call(gateway.binding()));
    sleep(TIMEOUT);
    assert_eq!(call.await, ProviderOutcome::NotSent);
    drop(listener);
}

/// A request sent in time may have been executed, however late its sender wakes up.
#[tokio::test]
async fn a_request_sent_before_the_sleep_is_unknown() {
    let (listener, gateway) = listening();
    let provider = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        stream
    });
    let mut call = pin!(charge(&gateway));
    while !provider.is_finished() {
        tokio::select! {
            biased;
            outcome = call.as_mut() => panic!("{outcome:?} from a silent provider"),
            () = tokio::task::yield_now() => {}
        }
    }
    sleep(TIMEOUT);
    assert_eq!(call.await, ProviderOutcome::Unknown(Cause::Timeout));
    drop(provider.join().unwrap());
}
