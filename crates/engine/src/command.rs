//! Commands that need a provider.

use crate::engine::Inner;
use crate::service::Submitted;
use crate::world::World;
use counterfoil_core::idempotency::claim::Resource;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::types::id::AccountId;
use counterfoil_gateway::Gateway;
use counterfoil_store::Store;
use std::sync::Arc;

/// A command as submitted.
pub(crate) enum Command {
    Create(Box<CreateCharge>),
    Operate(Operate),
    PayOut(Box<CreatePayout>),
}

/// A command together with the account it credits or pays from.
pub(crate) enum ResolvedCommand {
    Create(Box<CreateCharge>, AccountId),
    Operate(Operate),
    PayOut(Box<CreatePayout>, Arc<Account>),
}

impl Command {
    pub(crate) fn request(&self) -> &Request {
        match self {
            Command::Create(command) => &command.request,
            Command::Operate(command) => &command.request,
            Command::PayOut(command) => &command.request,
        }
    }

    pub(crate) async fn resolve<S: Store, G: Gateway, W: World>(
        self,
        inner: &Inner<S, G, W>,
    ) -> Result<ResolvedCommand, Submitted> {
        match self {
            Command::Create(command) => {
                let destination = inner.destination(&command).await?;
                Ok(ResolvedCommand::Create(command, destination))
            }
            Command::Operate(command) => Ok(ResolvedCommand::Operate(command)),
            Command::PayOut(command) => {
                let account = inner.paid_from(&command).await?;
                Ok(ResolvedCommand::PayOut(command, account))
            }
        }
    }
}

impl ResolvedCommand {
    pub(crate) fn request(&self) -> &Request {
        match self {
            ResolvedCommand::Create(command, _) => &command.request,
            ResolvedCommand::Operate(command) => &command.request,
            ResolvedCommand::PayOut(command, _) => &command.request,
        }
    }

    /// The resource that the claim of a refusal names. A refused creation made no payment, so its
    /// claim names a transaction.
    pub(crate) const fn refused_as(&self) -> Resource {
        match self {
            ResolvedCommand::Create(..) | ResolvedCommand::PayOut(..) => Resource::Transaction,
            ResolvedCommand::Operate(command) => match command.kind {
                OperationKind::Capture => Resource::Capture,
                OperationKind::Void => Resource::Void,
                OperationKind::Refund => Resource::Refund,
            },
        }
    }
}
