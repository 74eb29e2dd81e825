//! Redis behind TLS: the server is believed by its CA only.

use std::fs;

use water_domain::Fault;
use water_harness::certificates::{Authority, Purpose as CertificatePurpose};
use water_harness::{Port, Redis, scratch_directory};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Directory, Instance, Reason};

/// A server with a certificate of `authority` on a TLS port beside its plain one.
async fn tls_server(authority: &Authority) -> (Redis, Port) {
    let names = ["localhost", "127.0.0.1"];
    let certificate = authority
        .sign("redis", None, &names, CertificatePurpose::Server)
        .unwrap();
    let directory = scratch_directory("redis-tls").unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let port = Port::reserve().unwrap();
    let lines = [
        format!("tls-port {}", port.number()),
        format!(
            "tls-cert-file {}",
            file("redis.crt", &certificate.certificate_pem)
        ),
        format!("tls-key-file {}", file("redis.key", &certificate.key_pem)),
        format!(
            "tls-ca-cert-file {}",
            file("ca.crt", authority.certificate_pem())
        ),
        "tls-auth-clients no".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    (Redis::start_with(&lines).await.unwrap(), port)
}

fn directory(port: &Port, ca: &Authority) -> Directory {
    let url = format!("rediss://localhost:{}", port.number());
    let ca = ca.certificate_pem().as_bytes();
    let settings = ConnectionSettings::new(&url, Some(ca)).unwrap();
    let instance = Instance::new("water", "tls").unwrap();
    Directory::new(settings.connect(Purpose::Directory), instance)
}

#[tokio::test]
async fn a_server_of_the_given_ca_is_believed() {
    let authority = Authority::new("ca").unwrap();
    let (_redis, port) = tls_server(&authority).await;
    let seen = directory(&port, &authority).observe().await.unwrap();
    assert!(seen.needs_rebuild());
}

#[tokio::test]
async fn a_server_of_another_ca_is_not_spoken_to() {
    let (_redis, port) = tls_server(&Authority::new("ca").unwrap()).await;
    let other = Authority::new("another").unwrap();
    let refused = directory(&port, &other).observe().await.unwrap_err();
    assert_eq!(refused.reason(), Reason::Down);
    assert!(refused.is_transient());
}
