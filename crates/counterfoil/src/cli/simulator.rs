//! `simulator`: the payment provider simulator.

use super::listen;
use super::runtime::client_runtime;
use crate::exit::Exit;
use clap::Args;
use counterfoil_provider_simulator::{Options, Simulator as Provider, serve};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the payment provider simulator alone.
#[derive(Args, Debug)]
pub(crate) struct Simulator {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// Appends every executed effect to this file, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Simulator {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        client_runtime()?.block_on(async {
            let listener = listen(&self.listen, "--listen").await?;
            let address = listener.local_addr().map_err(Exit::failed)?;
            let provider = Provider::new(Options { log: self.log, ..Options::default() })
                .map_err(|error| Exit::refused(format!("--log cannot be written: {error}")))?;
            println!("provider simulator on http://{address} (effects: GET /_sim/effects, faults: PUT /_sim/faults)");
            let ended = serve(listener, provider, crate::wire_up::termination_signal()).await;
            ended.map_err(|error| Exit::failed(format!("the simulator stopped: {error}")))?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
