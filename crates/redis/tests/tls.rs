//! TLS to the server, with a private certificate authority.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_gateway::fence::{Fence, FenceFailure};
use counterfoil_testkit::redis::Server;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{LONG, ONE, PATIENT, client};

/// Makes a certificate authority, and a server's certificate and key signed by it.
fn certificates(server_name: &str) -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![server_name.to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap();
    (authority.pem(), server.pem(), key.serialize_pem())
}

#[tokio::test]
async fn a_server_is_proven_by_its_certificate_and_name() {
    let (authority, certificate, key) = certificates("127.0.0.1");
    let (other_authority, _, _) = certificates("127.0.0.1");
    let server = Server::start_with_tls(&certificate, &key).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let trust = |name: &str, pem: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string().replace('/', "%2F")
    };
    let port = server.tls_port().unwrap();
    let (ours, others) = (trust("ours.pem", &authority), trust("others.pem", &other_authority));

    for url in [
        format!("rediss://127.0.0.1:{port}?sslrootcert={others}"),
        format!("rediss://127.0.0.1:{port}"),
        format!("rediss://localhost:{port}?sslrootcert={ours}"),
        format!("redis://127.0.0.1:{port}"),
    ] {
        let answer = client(&url, PATIENT).take("ch_1", ONE, LONG).await;
        assert!(
            matches!(answer, Err(FenceFailure::Unreachable(_) | FenceFailure::Unheard(_))),
            "{url}: {answer:?}"
        );
    }
    let redis = client(&format!("rediss://127.0.0.1:{port}?sslrootcert={ours}"), PATIENT);
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(true));
}
