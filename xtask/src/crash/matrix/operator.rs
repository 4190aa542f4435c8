//! The operator of the dead letters: adopts the provider's state where it can be queried, and
//! leaves the rest.

use super::super::client::{self, Address, Client};
use super::super::order::Order;
use super::super::served;
use crate::failure::{Failure, Result};

/// Resolves every dead letter that the provider can answer for and returns the number.
pub(super) async fn adopt(address: &Address) -> Result<u64> {
    let (mut client, mut adopted) = (Client::new(address), 0);
    for letter in served::letters(address).await? {
        let (path, key) = (format!("/v1/dead-letters/{letter}/resolve"), format!("adopt-{letter}"));
        let answer = client.send("POST", &path, &key, r#"{"resolution":"adopt"}"#).await;
        let answer = answer.map_err(Failure::while_(format!("resolving {letter}")))?;
        match answer.status {
            200 => adopted += 1,
            // The provider cannot be queried, or contradicts itself.
            409 => {}
            status => {
                let body = String::from_utf8_lossy(&answer.body);
                return Err(Failure::new(format!("resolving {letter} was answered {status}: {body}")));
            }
        }
    }
    Ok(adopted)
}

/// Sends every unanswered request again.
pub(super) async fn ask_again(address: &Address, orders: &mut [Order]) {
    let mut client = Client::new(address);
    for order in orders.iter_mut().filter(|order| order.first.is_none()) {
        order.first = client::replay(&mut client, order).await;
    }
}
