//! Redis behind TLS: the server is trusted by its CA only.

use std::fs;

use anyhow::ensure;
use water_domain::Fault;
use water_harness::certificates::{Authority, Purpose as CertificatePurpose};
use water_harness::{Port, Redis, scratch_directory, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Directory, Instance, Reason};

use crate::site::{SOON, patiently};

/// A server with a certificate of `authority` on a TLS port in addition to its plain one, and with more lines of
/// redis.conf.
async fn tls_server(authority: &Authority, more: &[&str]) -> (Redis, Port) {
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
    let lines: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    (Redis::start_with(&lines).await.unwrap(), port)
}

fn directory(scheme: &str, port: &Port, ca: &Authority) -> Directory {
    let url = format!("{scheme}://localhost:{}", port.number());
    let ca = ca.certificate_pem().as_bytes();
    let settings = ConnectionSettings::new(&url, Some(ca)).unwrap();
    let instance = Instance::new("water", "tls").unwrap();
    Directory::new(settings.connect(Purpose::Directory), instance)
}

#[tokio::test]
async fn a_server_of_the_given_ca_is_believed() {
    let authority = Authority::new("ca").unwrap();
    let (_redis, port) = tls_server(&authority, &[]).await;
    let directory = directory("rediss", &port, &authority);
    let seen = patiently(async || Ok(directory.observe().await?)).await;
    assert!(seen.unwrap().needs_rebuild());
}

#[tokio::test]
async fn a_server_of_another_ca_is_not_spoken_to() {
    let (_redis, port) = tls_server(&Authority::new("ca").unwrap(), &[]).await;
    let other = Authority::new("another").unwrap();
    let refused = directory("rediss", &port, &other)
        .observe()
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), Reason::Down);
    assert!(refused.is_transient());
}

#[tokio::test]
async fn a_cluster_of_the_given_ca_is_believed_and_of_another_is_not() {
    let (authority, other) = (Authority::new("ca").unwrap(), Authority::new("b").unwrap());
    let bus = Port::reserve().unwrap();
    let bus = format!("cluster-port {}", bus.number());
    let lines = ["cluster-enabled yes", "tls-cluster yes", &bus];
    let (redis, port) = tls_server(&authority, &lines).await;
    let all = ["CLUSTER", "ADDSLOTSRANGE", "0", "16383"];
    redis.command(&all).await.unwrap();
    let whole = async || {
        let info = redis.command(&["CLUSTER", "INFO"]).await?;
        ensure!(info.contains("cluster_state:ok"), "{info}");
        Ok(())
    };
    wait_until("the cluster", SOON, whole).await.unwrap();
    let seen = directory("rediss-cluster", &port, &authority)
        .observe()
        .await;
    assert!(seen.unwrap().needs_rebuild());
    let refused = directory("rediss-cluster", &port, &other).observe().await;
    assert_eq!(refused.unwrap_err().reason(), Reason::ClusterDown);
}
