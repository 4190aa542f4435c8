//! A process that is stopped in the middle of a call and goes on after its deadline. One thread runs everything here,
//! so blocking it stops the connector as a signal would, at a moment the test chooses.

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

/// Goes as far as the call can go without any other task, and then stops everything until its deadline is over.
async fn begin_and_oversleep(call: Pin<&mut impl Future<Output = ProviderOutcome>>) {
    tokio::select! {
        biased;
        outcome = call => panic!("{outcome:?} before anything could be answered"),
        () = std::future::ready(()) => sleep(TIMEOUT),
    }
}

/// Answers the first request and gives back every byte that comes after it, until the connection is closed.
async fn answer_once(mut stream: TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    next_request(&mut stream, &mut read).await.unwrap();
    stream.write_all(&reply(200, "", &intent("pi_1", "succeeded"))).await.unwrap();
    stream.read_to_end(&mut read).await.unwrap();
    read
}

/// A connector with one idle connection, and what arrives on it from now on.
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

/// The kernel knows: no second connection was made.
fn assert_nobody_else_came(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// On a connection that is there, nothing is left to wait for between the request's first step and its leaving.
#[tokio::test]
async fn a_request_that_sleeps_before_it_takes_its_connection_does_not_leave() {
    let (listener, gateway, arriving) = connected().await;
    let call = gateway.call(call(gateway.binding()));
    sleep(TIMEOUT);
    assert_eq!(call.await, ProviderOutcome::NotSent);
    drop(gateway);
    assert_eq!(String::from_utf8(arriving.await.unwrap()).unwrap(), "", "not even a head");
    assert_nobody_else_came(&listener);
}

#[tokio::test]
async fn a_request_that_sleeps_while_it_connects_does_not_leave() {
    let (listener, gateway) = listening();
    {
        let mut call = pin!(charge(&gateway));
        begin_and_oversleep(call.as_mut()).await;
        assert_eq!(call.await, ProviderOutcome::NotSent);
    }
    // The kernel accepted for the listener meanwhile. Whatever was sent is there to be read, up to the end.
    let arrived = tokio::task::spawn_blocking(move || {
        let mut arrived = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
        arrived
    });
    drop(gateway);
    assert_eq!(String::from_utf8(arrived.await.unwrap()).unwrap(), "", "not even a head");
}

#[tokio::test]
async fn time_runs_from_the_call_and_not_from_its_first_poll() {
    let (listener, gateway) = listening();
    let call = gateway.call(call(gateway.binding()));
    sleep(TIMEOUT);
    assert_eq!(call.await, ProviderOutcome::NotSent);
    drop(listener);
}

/// A request that left in time has perhaps been executed, however late its sender wakes up.
#[tokio::test]
async fn a_request_that_left_before_the_sleep_is_unknown() {
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
