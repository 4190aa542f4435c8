//! TLS to the server: the checks of each `sslmode`, with test certificates.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::Store;
use counterfoil_store::conformance::fixtures::opening;
use counterfoil_store_postgres::{OpenError, Options, PostgresStore};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;
use support::{database, own_server, raw};

/// A certificate authority, and a server certificate with its key.
fn certificates(server_name: &str) -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![server_name.to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap();
    (authority.pem(), server.pem(), key.serialize_pem())
}

async fn error(url: &str) -> OpenError {
    PostgresStore::open(url, Options::default()).await.map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn a_server_is_verified_by_its_certificate_and_name() {
    let (mut server, database) = own_server(&[]).await;
    let (authority, certificate, key) = certificates("127.0.0.1");
    let (other_authority, _, _) = certificates("127.0.0.1");
    let file = |name: &str, path: PathBuf| (name.to_owned(), path.display().to_string());
    let settings = [
        ("ssl".to_owned(), "on".to_owned()),
        file("ssl_cert_file", server.keep("server.pem", &certificate).unwrap()),
        file("ssl_key_file", server.keep("server.key", &key).unwrap()),
    ];
    for (name, value) in &settings {
        server.set(name, value);
    }
    server.restart().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let trust = |name: &str, pem: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string().replace('/', "%2F")
    };
    let (ours, others) = (trust("ours.pem", &authority), trust("others.pem", &other_authority));
    let url = database.url();

    for mode in [format!("verify-full&sslrootcert={ours}"), "require".to_owned(), "prefer".to_owned()] {
        let store = PostgresStore::open(&format!("{url}?sslmode={mode}"), Options::default()).await.unwrap();
        let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
            WHERE application_name = 'counterfoil' AND datname = current_database() AND NOT ssl";
        let open = raw(&url).await.query_one(encrypted, &[]).await.unwrap().get::<_, i64>(0);
        assert_eq!(open, 0, "{mode}");
        assert!(store.tally(store.now()).await.is_ok());
        store.close().await;
    }
    for mode in [format!("verify-full&sslrootcert={others}"), "verify-full".to_owned()] {
        let refused = error(&format!("{url}?sslmode={mode}")).await;
        assert!(matches!(refused, OpenError::Tls(_)), "{mode}: {refused}");
    }
    let elsewhere = url.replace("127.0.0.1", "localhost");
    let refused = error(&format!("{elsewhere}?sslmode=verify-full&sslrootcert={ours}")).await;
    assert!(matches!(refused, OpenError::Tls(_)), "the certificate is for another name: {refused}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_it_is_required() {
    let database = database().await;
    let refused = error(&format!("{}?sslmode=require", database.url())).await;
    assert!(matches!(refused, OpenError::Tls(_)), "{refused}");
    let store = PostgresStore::open(&format!("{}?sslmode=disable", database.url()), Options::default())
        .await
        .unwrap();
    store.commit(opening(1)).await.unwrap();
}
