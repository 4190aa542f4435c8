//! Reading the ledger. A balance is a snapshot and its tail, never a whole history.

use crate::engine::Inner;
use crate::service::{BalanceView, TransactionView, TransferView};
use crate::world::World;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::ledger::transaction::{Reversal, TransactionKind};
use counterfoil_core::types::id::{HoldId, TenantId, TransactionId};
use counterfoil_core::types::position::Position;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store, Upto};

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn balance(&self, account: &Account, upto: Upto) -> Result<BalanceView, ReadError> {
        let (tenant, id) = (account.tenant, account.id);
        let rows = self.store.scan(Scan::Snapshots { tenant, account: id, upto, limit: 1 }).await?;
        let (position, totals) = match rows.into_iter().next() {
            Some(Row::Snapshot(snapshot)) => (snapshot.position, snapshot.totals),
            _ => (Position::START, Totals::default()),
        };
        let tail = self.store.fold(tenant, id, position, upto).await?;
        Ok(BalanceView {
            view: totals.and(tail.totals).seen_from(account.normal),
            position: tail.last.map_or(position, |last| last.position),
        })
    }

    pub(crate) async fn transfer(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> Result<Option<TransferView>, ReadError> {
        let hold = RowKey::Hold(tenant, HoldId::from_i64(id.to_i64()));
        let rows = self.store.read(vec![hold, RowKey::Transaction(tenant, id)]).await?;
        Ok(rows.into_iter().flatten().find_map(|row| match row {
            Row::Hold(hold) if hold.tenant == tenant => Some(TransferView::Held(hold)),
            Row::Transaction(transaction)
                if transaction.tenant == tenant && transaction.kind == TransactionKind::Transfer =>
            {
                Some(TransferView::Done(transaction))
            }
            _ => None,
        }))
    }

    pub(crate) async fn transaction(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> Result<Option<TransactionView>, ReadError> {
        let rows =
            self.store.read(vec![RowKey::Transaction(tenant, id), RowKey::Reversal(tenant, id)]).await?;
        let (mut transaction, mut reversal): (_, Option<Reversal>) = (None, None);
        for row in rows.into_iter().flatten() {
            match row {
                Row::Transaction(found) if found.tenant == tenant => transaction = Some(found),
                Row::Reversal(found) => reversal = Some(found),
                _ => {}
            }
        }
        Ok(transaction.map(|transaction| (transaction, reversal)))
    }
}
