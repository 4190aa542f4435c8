//! A provider that plays a script byte by byte and records the requests.

use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{LookupResult, ProviderOutcome, ProviderStep};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile};
use counterfoil_gateway_stripe::{ProfileOverrides, StripeGateway, StripeSettings};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const KEY: &str = "sk_test_SECRET";
/// Long enough for a healthy exchange on a busy machine.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);
/// Short enough to wait for, long enough to send a request on a busy machine.
pub(crate) const HASTY: Duration = Duration::from_millis(250);

/// An action of the provider after reading a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// Sends the bytes one at a time, in separate segments.
    Drip(Vec<u8>),
    /// Repeats the bytes until the client closes the connection.
    Flood(Vec<u8>),
    /// Stays silent and keeps the connection open.
    Hang,
    Cut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) struct Provider {
    pub(crate) addr: SocketAddr,
    accepted: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Provider {
    /// Plays the same script for every request on every connection.
    pub(crate) async fn playing(script: Vec<Act>) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider =
            Provider { addr: listener.local_addr().unwrap(), accepted: Arc::default(), seen: Arc::default() };
        let (accepted, seen) = (Arc::clone(&provider.accepted), Arc::clone(&provider.seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, script.clone(), Arc::clone(&seen)));
            }
        });
        provider
    }

    /// Answers every request with this status and body.
    pub(crate) async fn answering(status: u16, body: &str) -> Provider {
        Provider::playing(vec![Act::Send(reply(status, "", body))]).await
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn gateway(&self, timeout: Duration) -> StripeGateway {
        StripeGateway::new(settings(&format!("stripe+http://{KEY}@{}", self.addr), timeout)).unwrap()
    }

    /// Charges 12.50 dollars.
    pub(crate) async fn charged(&self) -> ProviderOutcome {
        charge(&self.gateway(PATIENT)).await
    }

    pub(crate) async fn looked_up(&self) -> LookupResult {
        look_up(&self.gateway(PATIENT)).await
    }
}

pub(crate) fn settings(url: &str, timeout: Duration) -> StripeSettings {
    StripeSettings {
        url: Masked::new(url.to_owned()),
        profile: ProviderProfile::named("stripe").unwrap(),
        bounds: ProfileOverrides::default(),
        timeout,
        connections_max: 8,
    }
}

pub(crate) fn call(binding: ProviderBinding) -> ProviderCall {
    ProviderCall {
        binding,
        step: ProviderStep::Charge,
        key: "cf0123456789".to_owned(),
        payment: "ch_1".to_owned(),
        reference: None,
        amount: Money::new(1250, Asset::parse("usd").unwrap()).unwrap(),
        instrument: Some(Masked::new("pm_card_visa".to_owned())),
    }
}

pub(crate) fn lookup(binding: ProviderBinding, step: ProviderStep) -> ProviderLookup {
    let ProviderCall { payment, amount, .. } = call(binding.clone());
    ProviderLookup { binding, step, key: "cf-lookup".to_owned(), payment, reference: None, amount }
}

pub(crate) async fn charge(gateway: &StripeGateway) -> ProviderOutcome {
    gateway.call(call(gateway.binding())).await
}

pub(crate) async fn look_up(gateway: &StripeGateway) -> LookupResult {
    gateway.lookup(lookup(gateway.binding(), ProviderStep::Charge)).await
}

/// A complete answer; `headers` are lines that end in CR LF.
pub(crate) fn reply(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// A payment intent with this status.
pub(crate) fn intent(id: &str, status: &str) -> String {
    let (received, capturable) = match status {
        "succeeded" => (1250, 0),
        "requires_capture" => (0, 1250),
        _ => (0, 0),
    };
    let error = match status {
        "requires_payment_method" => {
            r#"{"type":"card_error","code":"card_declined","decline_code":"lost_card"}"#
        }
        _ => "null",
    };
    format!(
        r#"{{"id":"{id}","object":"payment_intent","amount":1250,"amount_capturable":{capturable},"amount_received":{received},"currency":"usd","last_payment_error":{error},"metadata":{{"counterfoil_payment":"ch_1","counterfoil_step":"charge"}},"status":"{status}"}}"#
    )
}

async fn serve(mut stream: TcpStream, script: Vec<Act>, seen: Arc<Mutex<Vec<Seen>>>) {
    let mut read = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut read).await {
        seen.lock().unwrap().push(request);
        for act in &script {
            let played = match act {
                Act::Send(bytes) => stream.write_all(bytes).await,
                Act::Drip(bytes) => drip(&mut stream, bytes).await,
                Act::Flood(bytes) => flood(&mut stream, bytes).await,
                Act::Hang => std::future::pending().await,
                Act::Cut => return,
            };
            if played.is_err() {
                return;
            }
        }
    }
}

async fn drip(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn flood(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(bytes).await?;
    }
}

/// The next request on the connection; `None` once the client has closed it.
pub(crate) async fn next_request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Seen> {
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(read[..end].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            let whole = end + 4 + length;
            if read.len() >= whole {
                let body = String::from_utf8(read[end + 4..whole].to_vec()).unwrap();
                read.drain(..whole);
                return Some(Seen { head, body });
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&chunk[..count]),
        }
    }
}
