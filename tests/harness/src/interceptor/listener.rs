//! A listener of an interceptor: reads whole requests, delivers them, and carries answers back.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use super::framing::{Protocol, redis_frame};
use super::ledger::{Fault, Ledger, Moment};

/// Target of the requests.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    pub protocol: Protocol,
    /// TLS to the server; the bytes that come to the listener are never encrypted.
    pub tls: Option<TlsConnector>,
}

/// Makes TLS to a server whose certificate this authority has signed.
pub fn tls(authority_pem: &str) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority_pem.as_bytes());
    roots.add(
        authority
            .ok()
            .context("an authority's certificate in PEM")?,
    )?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config).into())
}

/// Serves connections until the task is aborted, and with it every connection.
pub async fn accept(
    listener: TcpListener,
    server: Server,
    ledger: Arc<Ledger>,
    mut cuts: watch::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else {
                    return;
                };
                connections.spawn(connect(client, server.clone(), Arc::clone(&ledger)));
                while connections.try_join_next().is_some() {}
            }
            Ok(()) = cuts.changed() => connections.abort_all(),
        }
    }
}

async fn connect(client: TcpStream, server: Server, ledger: Arc<Ledger>) -> Result<()> {
    client.set_nodelay(true)?;
    let stream = TcpStream::connect(server.address).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = server.tls else {
        return carry(client, stream, server.protocol, &ledger).await;
    };
    let name = ServerName::from(server.address.ip());
    let stream = tls.connect(name, stream).await?;
    carry(client, stream, server.protocol, &ledger).await
}

/// A fault that is due when the answer of this number comes, counted from 0.
type Due = Mutex<Option<(usize, Fault)>>;

/// Carries bytes both ways. Ends with an error when either end closes, or with a fault that has happened.
async fn carry(
    client: TcpStream,
    server: impl AsyncRead + AsyncWrite,
    protocol: Protocol,
    ledger: &Ledger,
) -> Result<()> {
    let (from_client, mut to_client) = client.into_split();
    let (from_server, to_server) = tokio::io::split(server);
    let due = Due::default();
    let delivering = deliver(from_client, to_server, protocol, ledger, &due);
    let answering = async {
        match protocol {
            Protocol::Http => stream_back(from_server, &mut to_client, &due).await,
            Protocol::Redis => reply_back(from_server, &mut to_client, &due).await,
        }
    };
    let fault = tokio::select! {
        ended = delivering => ended?,
        ended = answering => ended?,
    };
    match fault {
        Fault::Cut => Ok(()),
        Fault::Kill(process) => process.kill(),
        Fault::Hang => std::future::pending().await,
        Fault::Late(_) => bail!("it was delivered already"),
        Fault::Answer(answer) => {
            to_client.write_all(&answer).await?;
            Ok(to_client.shutdown().await?)
        }
    }
}

async fn deliver(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    protocol: Protocol,
    ledger: &Ledger,
    due: &Due,
) -> Result<Fault> {
    let (mut received, mut delivered) = (BytesMut::new(), 0);
    loop {
        while let Some(length) = protocol.request_length(&received)? {
            let request = received.split_to(length);
            match ledger.note(protocol, &request) {
                None => {}
                Some((Moment::BeforeDelivery, Fault::Late(pause))) => sleep(pause).await,
                Some((Moment::BeforeDelivery, fault)) => return Ok(fault),
                Some((Moment::AfterDelivery, fault)) => {
                    *due.lock().unwrap_or_else(PoisonError::into_inner) = Some((delivered, fault));
                }
            }
            to.write_all(&request).await?;
            to.flush().await?;
            delivered += 1;
        }
        if from.read_buf(&mut received).await? == 0 {
            bail!("the client has closed the connection");
        }
    }
}

/// Carries an HTTP answer back, which begins with the first bytes after its request.
async fn stream_back(
    mut from: impl AsyncRead + Unpin,
    to: &mut OwnedWriteHalf,
    due: &Due,
) -> Result<Fault> {
    let mut received = BytesMut::new();
    while from.read_buf(&mut received).await? > 0 {
        let fault = due.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, fault)) = fault {
            return Ok(fault);
        }
        to.write_all_buf(&mut received).await?;
    }
    bail!("the server has closed the connection")
}

/// Carries replies back, which come in the order of their commands, some of them in one piece.
async fn reply_back(
    mut from: impl AsyncRead + Unpin,
    to: &mut OwnedWriteHalf,
    due: &Due,
) -> Result<Fault> {
    let (mut received, mut answered) = (BytesMut::new(), 0);
    loop {
        while let Some(length) = redis_frame(&received)? {
            let mut reply = received.split_to(length);
            let is_pushed = reply.first() == Some(&b'>');
            let fault = {
                let mut due = due.lock().unwrap_or_else(PoisonError::into_inner);
                due.take_if(|(number, _)| *number == answered && !is_pushed)
            };
            if let Some((_, fault)) = fault {
                return Ok(fault);
            }
            answered += usize::from(!is_pushed);
            to.write_all_buf(&mut reply).await?;
        }
        if from.read_buf(&mut received).await? == 0 {
            bail!("the server has closed the connection");
        }
    }
}
