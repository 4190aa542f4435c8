//! Addresses that stay free while the server on them is dead.
//!
//! Ports from the kernel's ephemeral range are unfit: a client that connects to a dead server may
//! be given the server's own port, talk to itself, and block the port. Two servers of this process
//! must not get the same port either, even while the first is dead.

use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Below Linux's ephemeral range (32768 and above), above the ports of common services.
const FIRST: u16 = 15_000;
const COUNT: u16 = 15_000;
const TRIES_MAX: u32 = 200;

/// Addresses handed out so far; a dead server's port looks free.
static GIVEN: Mutex<Option<HashSet<SocketAddr>>> = Mutex::new(None);

/// A free loopback address outside the ephemeral range, handed out once.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut prng = Prng::new(u64::from(since_epoch.subsec_nanos()) << 32 | u64::from(std::process::id()));
    for _ in 0..TRIES_MAX {
        let offset = u16::try_from(prng.below(u64::from(COUNT))).unwrap_or(0);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST.saturating_add(offset)));
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if TcpListener::bind(address).is_ok() && given.get_or_insert_default().insert(address) {
            return Ok(address);
        }
    }
    Err(Failure::new(format!("no free port on loopback from {FIRST} on; stop what listens there")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_given_twice() {
        let given: HashSet<SocketAddr> = (0..50).map(|_| free_address().unwrap()).collect();
        assert_eq!(given.len(), 50);
    }
}
