//! `dev`: everything in one process for a first look.

use super::runtime::server_runtime;
use super::{Common, flag, listen, peers};
use crate::config::Override;
use crate::exit::Exit;
use crate::{logs, wire_up};
use clap::Args;
use counterfoil_provider_simulator::{Options, Simulator};
use std::net::SocketAddr;
use std::process::ExitCode;

/// The demo tenant's API key. Not a secret, because `dev` listens on loopback only.
pub(crate) const DEMO_KEY: &str = "sk_test_demo";

/// Runs everything in one process for a first look: API, provider simulator, demo tenant. Loopback
/// only.
#[derive(Args, Debug)]
pub(crate) struct Dev {
    #[command(flatten)]
    common: Common,
    /// Address of the API.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Address of the provider simulator.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    gateway_listen: String,
    /// Another Counterfoil whose accounts can be paid:
    /// NAME=counterfoil+http://KEY@host:port/ACCOUNT. May be repeated.
    #[arg(long, value_name = "NAME=URL")]
    peer: Vec<String>,
    /// The store: a path, file:PATH, postgres://USER@HOST/DATABASE or memory:.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

impl Dev {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        loopback(&self.listen, "--listen")?;
        loopback(&self.gateway_listen, "--gateway-listen")?;
        // The runtime must exist before the simulator's address is known; no setting read here
        // depends on that address.
        let threads = self.common.settings(Vec::new())?.server.threads;
        server_runtime(threads)?.block_on(async {
            let provider = listen(&self.gateway_listen, "--gateway-listen").await?;
            let provider_address = provider.local_addr().map_err(Exit::failed)?;
            let flags = [
                flag("server", "listen", "--listen", Some(&self.listen)),
                flag("store", "url", "--store", self.store.as_ref()),
                Some(Override {
                    section: "gateway",
                    name: "url",
                    source: "--gateway-listen",
                    value: format!("stripe+http://sk_test_simulator@{provider_address}"),
                }),
            ];
            let flags = flags.into_iter().flatten().chain(peers(&self.peer)).collect();
            let settings = self.common.settings(flags)?;
            logs::start(&settings)?;
            let gateway = wire_up::gateway(&settings)?;
            let listener = listen(&self.listen, "--listen").await?;
            let simulator = Simulator::new(Options::default())
                .map_err(|error| Exit::failed(format!("the provider simulator cannot start: {error}")))?;
            let serving = tokio::spawn(counterfoil_provider_simulator::serve(
                provider,
                simulator,
                std::future::pending::<()>(),
            ));
            let address = listener.local_addr().map_err(Exit::failed)?;
            wire_up::serve(
                &settings,
                listener,
                gateway,
                Some(Box::new(move || greet(address, provider_address))),
            )
            .await?;
            serving.abort();
            Ok(ExitCode::SUCCESS)
        })
    }
}

fn loopback(address: &str, flag: &str) -> Result<(), Exit> {
    match address.parse::<SocketAddr>() {
        Ok(parsed) if parsed.ip().is_loopback() => Ok(()),
        Ok(_) => Err(Exit::refused(format!(
            "{flag} {address} is not a loopback address; `dev` has a well-known key and stays on this machine, use `serve` instead"
        ))),
        Err(_) => {
            Err(Exit::refused(format!("{flag} {address} is not an address; write it as 127.0.0.1:8080")))
        }
    }
}

fn greet(api: SocketAddr, provider: SocketAddr) {
    println!(
        "Counterfoil is ready.\n\n  API        http://{api}\n  API page   http://{api}/docs\n  Metrics    http://{api}/metrics\n  \
         Provider   http://{provider} (a simulator; its truth: http://{provider}/_sim/effects)\n\nYour first charge:\n\n  \
         curl -i http://{api}/v1/charges -H 'Authorization: Bearer {DEMO_KEY}' -H 'Idempotency-Key: first-charge' \
         -H 'Content-Type: application/json' -d '{{\"amount\":1250,\"currency\":\"USD\",\"payment_method\":\"pm_card_visa\"}}'\n\n\
         Send it twice: the second answer is the first, byte for byte, and the card is charged once.\n"
    );
}
