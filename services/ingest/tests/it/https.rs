//! A server of files on loopback that may misbehave, and a proxy before it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use water_harness::certificates::{Authority, Purpose};

/// Action of the server once it has read a request's head.
pub type Answer = fn(&mut dyn Write, &str) -> io::Result<()>;

/// A running server; it ends with the test's process.
pub struct Server {
    address: SocketAddr,
    /// Certificate of the server's authority, PEM.
    pub ca: String,
    /// The heads of all requests.
    pub heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers each request with `answer`, then closes.
    pub fn start(
        answer: impl Fn(&mut dyn Write, &str) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        let authority = Authority::new("a test's authority").unwrap();
        let names = ["localhost", "127.0.0.1"];
        let own = authority
            .sign("localhost", None, &names, Purpose::Server)
            .unwrap();
        let chain = CertificateDer::from_pem_slice(own.certificate_pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, noted) = (Arc::clone(&config), Arc::clone(&noted));
                let answer = Arc::clone(&answer);
                // A client that gave up is no failure of the server.
                thread::spawn(move || serve(stream, config, &noted, &*answer));
            }
        });
        Self {
            address,
            ca: authority.certificate_pem().to_owned(),
            heads,
        }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// Writes the authority's certificate into the folder.
    pub fn ca_file(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ca.crt");
        fs::write(&path, &self.ca).unwrap();
        path
    }
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    heads: &Mutex<Vec<String>>,
    answer: &impl Fn(&mut dyn Write, &str) -> io::Result<()>,
) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    heads.lock().unwrap().push(head.clone());
    let mut stream = stream.into_inner();
    answer(&mut stream, &head)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// A proxy that connects to any requested host; its address, and the hosts that were requested.
pub fn proxy() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let noted = Arc::clone(&noted);
            thread::spawn(move || tunnel(client, &noted));
        }
    });
    (address, asked)
}

fn tunnel(mut client: TcpStream, asked: &Mutex<Vec<String>>) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(target.clone());
    let mut server = TcpStream::connect(target)?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut back, mut from) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut back));
    io::copy(&mut client, &mut server).map(drop)
}
