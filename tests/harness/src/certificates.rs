//! Certificates and kubeconfigs for servers that live as long as a test or a development cluster: an
//! authority, and the certificates that it signs. Keys are ECDSA P-256. Nothing here expires within a
//! cluster's life: it is thrown away before.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use serde_json::json;
use sha2::{Digest, Sha256};

/// A certificate authority that signs in this process.
pub struct Authority {
    certificate_pem: String,
    key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its private key, both as PEM text.
pub struct Certificate {
    /// The certificate alone, without its authority's.
    pub certificate_pem: String,
    /// The private key, PKCS #8.
    pub key_pem: String,
}

/// Purpose of a certificate: `Server` answers TLS, `Client` proves who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `serverAuth`
    Server,
    /// `clientAuth`
    Client,
    /// The two purposes together, as a kubelet needs them.
    Both,
}

impl Authority {
    /// Makes a self-signed authority with this common name.
    pub fn new(common_name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate()?;
        let key_pem = key.serialize_pem();
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            certificate_pem,
            key_pem,
            issuer: Issuer::new(params, key),
        })
    }

    /// Signs a certificate for `common_name`. `organisation` is the Kubernetes
    /// group (`system:masters`); `names` are DNS names and IP addresses.
    pub fn sign(
        &self,
        common_name: &str,
        organisation: Option<&str>,
        names: &[&str],
        purpose: Purpose,
    ) -> Result<Certificate> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)
            .with_context(|| format!("names of the certificate for {common_name}"))?;
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        if let Some(organisation) = organisation {
            params
                .distinguished_name
                .push(DnType::OrganizationName, organisation);
        }
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        params.extended_key_usages = match purpose {
            Purpose::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Purpose::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Purpose::Both => {
                vec![
                    ExtendedKeyUsagePurpose::ServerAuth,
                    ExtendedKeyUsagePurpose::ClientAuth,
                ]
            }
        };
        let key = KeyPair::generate()?;
        let certificate_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Certificate {
            certificate_pem,
            key_pem: key.serialize_pem(),
        })
    }

    /// Returns the authority's certificate as PEM text.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Writes `<name>.crt` and `<name>.key` of the authority itself.
    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        write_pair(directory, name, &self.certificate_pem, &self.key_pem)
    }

    /// Makes a kubeconfig (JSON, which is YAML) for a user with this certificate.
    pub fn kubeconfig(&self, server: &str, certificate: &Certificate) -> String {
        let user = json!({
            "client-certificate-data": BASE64.encode(&certificate.certificate_pem),
            "client-key-data": BASE64.encode(&certificate.key_pem),
        });
        self.kubeconfig_of(server, user)
    }

    /// Makes a kubeconfig for a user with a bearer token, as a ServiceAccount has it.
    pub fn kubeconfig_with_token(&self, server: &str, token: &str) -> String {
        self.kubeconfig_of(server, json!({ "token": token }))
    }

    fn kubeconfig_of(&self, server: &str, user: serde_json::Value) -> String {
        let cluster = json!({
            "server": server,
            "certificate-authority-data": BASE64.encode(&self.certificate_pem),
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "cluster", "cluster": cluster }],
            "users": [{ "name": "user", "user": user }],
            "contexts": [{ "name": "context", "context": { "cluster": "cluster", "user": "user" } }],
            "current-context": "context",
        });
        format!("{config:#}\n")
    }
}

impl Certificate {
    /// Writes `<name>.crt` and `<name>.key`; the key is readable by its owner only.
    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        write_pair(directory, name, &self.certificate_pem, &self.key_pem)
    }
}

/// Makes a key pair that signs ServiceAccount tokens: writes `<name>.key` and `<name>.pub`.
pub fn write_token_keys(directory: &Path, name: &str) -> Result<()> {
    let key = KeyPair::generate()?;
    write_private(&directory.join(format!("{name}.key")), &key.serialize_pem())?;
    write_private(
        &directory.join(format!("{name}.pub")),
        &key.public_key_pem(),
    )
}

/// Returns the public half's SHA-256 in base64 (SubjectPublicKeyInfo, as in RFC 7469 section 2.4) of a
/// private key in PEM: the value of Chromium's `--ignore-certificate-errors-spki-list`.
pub fn public_key_fingerprint(key_pem: &str) -> Result<String> {
    let key = KeyPair::from_pem(key_pem).context("cannot understand the private key")?;
    Ok(BASE64.encode(Sha256::digest(key.subject_public_key_info())))
}

fn write_pair(directory: &Path, name: &str, certificate: &str, key: &str) -> Result<()> {
    write_private(&directory.join(format!("{name}.key")), key)?;
    let path = directory.join(format!("{name}.crt"));
    fs::write(&path, certificate).with_context(|| format!("write {}", path.display()))
}

/// Writes a file that only its owner can read, as anything with a key must be.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let opened = options.open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("write {}", path.display()))
}
