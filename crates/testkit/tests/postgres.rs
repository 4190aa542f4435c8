//! PostgreSQL servers of the kit: they keep confirmed commits, are really killed, and leave nothing
//! behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_testkit::postgres::{Database, Server, connect};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_confirmed_writes_and_a_dropped_one_is_gone() {
    let mut server = Server::start(&[]).unwrap();
    let fill = async |url: String| {
        let db = connect(&url).await.map_err(|failure| failure.to_string())?;
        db.batch_execute("CREATE TABLE kept (n INT)").await.map_err(|error| error.to_string())
    };
    let database = Database::copy_of(&server.address(), "filled", fill).await.unwrap();
    let unused = async |_: String| Err("the template is there already".to_owned());
    let other = Database::copy_of(&server.address(), "filled", unused).await.unwrap();
    assert_ne!(database.url(), other.url());
    drop(other);
    connect(&database.url()).await.unwrap().batch_execute("INSERT INTO kept VALUES (7)").await.unwrap();

    server.kill().unwrap();
    assert!(connect(&database.url()).await.is_err(), "a killed server answers");
    server.restart().unwrap();
    let row = connect(&database.url()).await.unwrap().query_one("SELECT n FROM kept", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 7);

    let (url, data) = (database.url(), server.data());
    drop(database);
    assert!(connect(&url).await.is_err(), "the database is still there");
    drop(server);
    assert!(connect(&url).await.is_err(), "the server is still there");
    assert!(!data.exists(), "its files are still there");
}
