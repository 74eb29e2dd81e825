//! A hostile identity provider: it serves discovery, keys and the token endpoint over https, and signs any
//! claims, by any key and under any header.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::certificates::{Authority, Purpose};

/// A running provider; it ends when it is dropped.
pub struct IdentityProvider {
    issuer: String,
    authority: String,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

/// A key that the provider signs with.
pub struct SigningKey {
    kid: String,
    pair: KeyPair,
    elliptic: bool,
}

struct State {
    document: Value,
    keys: Vec<Value>,
    /// Answers of the token endpoint, by code; each is given once.
    codes: HashMap<String, String>,
    /// The forms that were posted to the token endpoint.
    exchanges: Vec<String>,
    asked_for_keys: usize,
    /// Word by which the token endpoint refuses every client, if it refuses all.
    refusal: Option<String>,
    away: bool,
}

impl IdentityProvider {
    /// Starts one on loopback, which publishes no key yet.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address: SocketAddr = listener.local_addr()?;
        let issuer = format!("https://localhost:{}/issuer", address.port());
        let authority = Authority::new("identity provider")?;
        let tls = acceptor(&authority)?;
        let state = Arc::new(Mutex::new(State {
            document: json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/auth"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
                "end_session_endpoint": format!("{issuer}/logout"),
            }),
            keys: Vec::new(),
            codes: HashMap::new(),
            exchanges: Vec::new(),
            asked_for_keys: 0,
            refusal: None,
            away: false,
        }));
        let accepting = tokio::spawn(accept(listener, tls, Arc::clone(&state)));
        Ok(Self {
            issuer,
            authority: authority.certificate_pem().to_owned(),
            state,
            accepting,
        })
    }

    /// Returns its issuer identifier.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the PEM text of the authority that signed its certificate.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Publishes these keys and no others.
    pub fn tell(&self, keys: &[&SigningKey]) {
        self.lock().keys = keys.iter().map(|key| key.public()).collect();
    }

    /// Sets a member of the discovery document; null takes it away.
    pub fn describe(&self, member: &str, value: Value) {
        let mut state = self.lock();
        match value {
            Value::Null => {
                let document = state.document.as_object_mut();
                document.map(|document| document.remove(member));
            }
            value => state.document[member] = value,
        }
    }

    /// Answers the exchange of `code`, once, with this ID token.
    pub fn give(&self, code: &str, id_token: &str) {
        let answer = json!({ "token_type": "Bearer", "access_token": "a", "id_token": id_token });
        let (code, answer) = (code.to_owned(), answer.to_string());
        self.lock().codes.insert(code, answer);
    }

    /// Refuses every client that exchanges a code, by this word of RFC 6749 §5.2; none: no client.
    pub fn refuse_clients(&self, word: Option<&str>) {
        self.lock().refusal = word.map(str::to_owned);
    }

    /// Sets whether it closes every connection at once.
    pub fn set_away(&self, away: bool) {
        self.lock().away = away;
    }

    /// Returns the forms that were posted to the token endpoint, as they came.
    pub fn exchanges(&self) -> Vec<String> {
        self.lock().exchanges.clone()
    }

    /// Returns how often its keys were asked for.
    pub fn asked_for_keys(&self) -> usize {
        self.lock().asked_for_keys
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl SigningKey {
    /// Makes an ES256 key.
    pub fn elliptic(kid: &str) -> Result<Self> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let kid = kid.to_owned();
        Ok(Self {
            kid,
            pair,
            elliptic: true,
        })
    }

    /// Makes an EdDSA key.
    pub fn edwards(kid: &str) -> Result<Self> {
        let pair = KeyPair::generate_for(&PKCS_ED25519)?;
        let kid = kid.to_owned();
        Ok(Self {
            kid,
            pair,
            elliptic: false,
        })
    }

    /// Signs a token with these claims under its own header.
    pub fn sign(&self, claims: &Value) -> Result<String> {
        let algorithm = if self.elliptic { "ES256" } else { "EdDSA" };
        self.sign_under(&json!({ "alg": algorithm, "kid": self.kid }), claims)
    }

    /// Signs a token with these claims under any header.
    pub fn sign_under(&self, header: &Value, claims: &Value) -> Result<String> {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = self.signature(message.as_bytes())?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>> {
        let key = self.pair.serialize_der();
        if !self.elliptic {
            let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key) else {
                bail!("ring does not take the Ed25519 key");
            };
            return Ok(pair.sign(message).as_ref().to_vec());
        }
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random);
        let Ok(signed) = pair.map(|pair| pair.sign(&random, message)) else {
            bail!("ring does not take the P-256 key");
        };
        match signed {
            Ok(signature) => Ok(signature.as_ref().to_vec()),
            Err(_) => bail!("ring cannot sign"),
        }
    }

    /// Returns the public key's bytes: a token that is signed by HMAC with them would be trusted by them.
    pub fn public_bytes(&self) -> &[u8] {
        self.pair.der_bytes()
    }

    /// Returns the key as a JWK (RFC 7518 §6.2, RFC 8037 §2).
    fn public(&self) -> Value {
        let bytes = self.public_bytes();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self.elliptic {
            // An uncompressed point: 4, x, y.
            true => json!({
                "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
                "x": encode(&bytes[1..33]), "y": encode(&bytes[33..]),
            }),
            false => json!({
                "kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": self.kid, "x": encode(bytes),
            }),
        }
    }
}

fn acceptor(authority: &Authority) -> Result<TlsAcceptor> {
    let signed = authority.sign("localhost", None, &["localhost"], Purpose::Server)?;
    let certificate = CertificateDer::from_pem_slice(signed.certificate_pem.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(signed.key_pem.as_bytes())?;
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        if lock(&state).away {
            continue;
        }
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        // A client that breaks off has no answer to wait for.
        tokio::spawn(async move { answer(tls, stream, &state).await.ok() });
    }
}

/// Answers the request of a connection, which has one only.
async fn answer(tls: TlsAcceptor, stream: TcpStream, state: &Mutex<State>) -> Result<()> {
    let mut stream = BufReader::new(tls.accept(stream).await?);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first).await?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().context("read the body's length")?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let target = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = lock(state).reply(target, &String::from_utf8_lossy(&body));
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}

impl State {
    fn reply(&mut self, target: &str, body: &str) -> (&'static str, String) {
        match target {
            "/issuer/.well-known/openid-configuration" => ("200 OK", self.document.to_string()),
            "/issuer/keys" => {
                self.asked_for_keys += 1;
                ("200 OK", json!({ "keys": self.keys }).to_string())
            }
            "/issuer/token" => {
                self.exchanges.push(body.to_owned());
                if let Some(word) = &self.refusal {
                    let status = match word.as_str() {
                        "invalid_client" => "401 Unauthorized",
                        _ => "400 Bad Request",
                    };
                    return (status, json!({ "error": word }).to_string());
                }
                let code = body.split('&').find_map(|pair| pair.strip_prefix("code="));
                match self.codes.remove(code.unwrap_or_default()) {
                    Some(answer) => ("200 OK", answer),
                    None => ("400 Bad Request", r#"{"error":"invalid_grant"}"#.to_owned()),
                }
            }
            _ => ("404 Not Found", String::new()),
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
