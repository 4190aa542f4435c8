//! The human behind the dead letters: takes the provider's word for what it can be asked about, and leaves the rest.

use super::super::client::{self, Address, Client};
use super::super::order::Order;
use super::super::served;
use crate::failure::{Failure, Result};

/// Resolves every letter that the provider has a word for; how many.
pub(super) async fn adopt(address: &Address) -> Result<u64> {
    let (mut client, mut adopted) = (Client::new(address), 0);
    for letter in served::letters(address).await? {
        let (path, key) = (format!("/v1/dead-letters/{letter}/resolve"), format!("adopt-{letter}"));
        let answer = client.send("POST", &path, &key, r#"{"resolution":"adopt"}"#).await;
        let answer = answer.map_err(Failure::while_(format!("resolving {letter}")))?;
        match answer.status {
            200 => adopted += 1,
            // It cannot be asked, or contradicts itself.
            409 => {}
            status => {
                let told = String::from_utf8_lossy(&answer.body);
                return Err(Failure::new(format!("resolving {letter} was answered {status}: {told}")));
            }
        }
    }
    Ok(adopted)
}

/// Asks once more for everything that has no answer yet.
pub(super) async fn ask_again(address: &Address, orders: &mut [Order]) {
    let mut client = Client::new(address);
    for order in orders.iter_mut().filter(|order| order.first.is_none()) {
        order.first = client::replay(&mut client, order).await;
    }
}
