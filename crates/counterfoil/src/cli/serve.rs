//! `serve`: the production server.

use super::runtime::server_runtime;
use super::{Common, flag, listen, peers};
use crate::exit::Exit;
use crate::{logs, wire_up};
use clap::Args;
use std::process::ExitCode;

/// Runs the production server.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    #[command(flatten)]
    common: Common,
    /// Address to listen on, for example 127.0.0.1:8080.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The store: a path, file:PATH, postgres://USER@HOST/DATABASE or memory:.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The payment provider: stripe+https://KEY@host or stripe+http://KEY@host:port.
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Another Counterfoil whose accounts can be paid: NAME=counterfoil+https://KEY@host/ACCOUNT.
    /// May be repeated.
    #[arg(long, value_name = "NAME=URL")]
    peer: Vec<String>,
    /// Redis or Valkey shared by several servers: redis://host:6379. Optional: payments continue
    /// when it fails.
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
}

impl Serve {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let flags = [
            flag("server", "listen", "--listen", self.listen.as_ref()),
            flag("store", "url", "--store", self.store.as_ref()),
            flag("gateway", "url", "--gateway", self.gateway.as_ref()),
            flag("redis", "url", "--redis", self.redis.as_ref()),
        ];
        let flags = flags.into_iter().flatten().chain(peers(&self.peer)).collect();
        let settings = self.common.settings(flags)?;
        let Some(address) = settings.server.listen else {
            return Err(Exit::refused(
                "no address to listen on; give --listen ADDR, for example --listen 127.0.0.1:8080",
            ));
        };
        logs::start(&settings)?;
        server_runtime(settings.server.threads)?.block_on(async {
            let gateway = wire_up::gateway(&settings)?;
            let listener = listen(&address.to_string(), "--listen").await?;
            wire_up::serve(&settings, listener, gateway, None).await?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
