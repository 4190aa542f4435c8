//! Redis servers of the kit: really killed, really paused, replicated, and nothing is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_testkit::redis::{Relay, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[test]
fn a_killed_server_restarts_empty_and_a_dropped_one_is_gone() {
    let mut server = Server::start(&[]).unwrap();
    assert_eq!(server.say(&["SET", "kept", "7"]).unwrap(), "OK");
    assert_eq!(server.say(&["GET", "kept"]).unwrap(), "7");
    server.kill().unwrap();
    assert!(server.say(&["PING"]).is_err(), "a killed server answers");
    server.restart().unwrap();
    assert_eq!(server.say(&["EXISTS", "kept"]).unwrap(), "0");

    server.pause().unwrap();
    let port = server.port();
    drop(server);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "even a paused server goes");
}

#[test]
fn a_replica_has_its_primarys_data_and_takes_writes_once_promoted() {
    let primary = Server::start(&[]).unwrap();
    primary.say(&["SET", "kept", "7"]).unwrap();
    let replica = Server::replica_of(&primary).unwrap();
    assert_eq!(replica.say(&["GET", "kept"]).unwrap(), "7");
    assert!(replica.say(&["SET", "kept", "8"]).unwrap().starts_with("READONLY"));
    replica.promote().unwrap();
    assert_eq!(replica.say(&["SET", "kept", "8"]).unwrap(), "OK");
}

#[tokio::test]
async fn a_turned_relay_cuts_connections_and_leads_to_the_other_server() {
    let (one, two) = (Server::start(&[]).unwrap(), Server::start(&[]).unwrap());
    let relay = Relay::to(one.port()).await.unwrap();
    let port_of = async |stream: &mut TcpStream| {
        stream.write_all(b"CONFIG GET port\r\n").await.ok()?;
        let mut answer = vec![0; 256];
        let read @ 1.. = stream.read(&mut answer).await.ok()? else { return None };
        String::from_utf8(answer[..read].to_vec()).ok()
    };
    let mut first = TcpStream::connect(("127.0.0.1", relay.port())).await.unwrap();
    assert!(port_of(&mut first).await.unwrap().contains(&one.port().to_string()));
    relay.turn_to(two.port());
    assert_eq!(port_of(&mut first).await, None, "the old connection stands");
    let mut second = TcpStream::connect(("127.0.0.1", relay.port())).await.unwrap();
    assert!(port_of(&mut second).await.unwrap().contains(&two.port().to_string()));
}
