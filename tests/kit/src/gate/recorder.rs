//! A service that answers as a test orders and remembers every byte of its requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Answer to a request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Sends these bytes.
    Answer(String),
    /// Sends these bytes and closes the connection.
    AnswerAndClose(String),
    /// Closes the connection without a byte.
    Close,
    /// Never answers.
    Silence,
    /// Answers with an empty JSON object once it is notified.
    Wait(Arc<Notify>),
}

/// A request as it came: its head, line by line.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The connection's number, from 0.
    pub connection: usize,
    /// The request line.
    pub line: String,
    /// Name and value as they came.
    pub fields: Vec<(String, String)>,
}

impl Seen {
    /// Returns the values of a field, by its name in any case.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = self
            .fields
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the names of all fields, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .fields
            .iter()
            .map(|(name, _)| name.to_lowercase())
            .collect();
        names.sort();
        names
    }
}

/// The running service. It has a thread of its own, so that a busy test does not delay its answers.
pub struct Recorder {
    /// Address on which it answers.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: Option<thread::JoinHandle<()>>,
}

struct Shared {
    behaviour: Mutex<Behaviour>,
    seen: Mutex<Vec<Seen>>,
    ended: Notify,
}

impl Recorder {
    /// Answers every request with an empty JSON object.
    pub async fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Answers at this address. Dropping it closes every connection, as the end of a process does.
    pub async fn start_at(address: SocketAddr) -> Self {
        Self::on(TcpListener::bind(address).await.unwrap())
    }

    /// Answers on this listener.
    pub fn on(listener: TcpListener) -> Self {
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(Behaviour::Answer(ok("application/json", "{}"))),
            seen: Mutex::default(),
            ended: Notify::new(),
        });
        let address = listener.local_addr().unwrap();
        // So far it belongs to the test's runtime.
        let listener = listener.into_std().unwrap();
        let runtime = runtime::Builder::new_current_thread().enable_io().build();
        let (runtime, served) = (runtime.unwrap(), Arc::clone(&shared));
        let serving = thread::spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, Arc::clone(&served)) => {}
                    () = served.ended.notified() => {}
                }
            });
        });
        Self {
            address,
            shared,
            serving: Some(serving),
        }
    }

    /// Sets the behaviour from the next request on.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Returns the requests since the last call, or ever.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.shared.seen.lock().unwrap())
    }

    /// Returns the only request so far.
    pub fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.ended.notify_one();
        if let Some(serving) = self.serving.take() {
            // A panic of that thread was printed when it happened.
            let _ = serving.join();
        }
    }
}

/// Returns an answer with this type and body.
pub fn ok(kind: &str, body: &str) -> String {
    with("200 OK", &format!("content-type: {kind}\r\n"), body)
}

/// Returns an answer with this status, these fields and this body.
pub fn with(status: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{fields}content-length: {length}\r\n\r\n{body}")
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut serving = JoinSet::new();
    for connection in 0.. {
        let (stream, _) = listener.accept().await.unwrap();
        serving.spawn(serve(stream, connection, Arc::clone(&shared)));
    }
}

async fn serve(mut stream: TcpStream, connection: usize, shared: Arc<Shared>) {
    while let Some(seen) = read(&mut stream, connection).await {
        // Taken before the request is seen: a test that sees it may change the behaviour, or notify those who wait.
        let behaviour = shared.behaviour.lock().unwrap().clone();
        let told = match &behaviour {
            Behaviour::Wait(told) => Some(Arc::clone(told).notified_owned()),
            _ => None,
        };
        shared.seen.lock().unwrap().push(seen);
        match behaviour {
            Behaviour::Answer(bytes) => stream.write_all(bytes.as_bytes()).await.unwrap(),
            Behaviour::AnswerAndClose(bytes) => {
                // The gate may have heard enough before the end.
                let _ = stream.write_all(bytes.as_bytes()).await;
                return;
            }
            Behaviour::Close => return,
            Behaviour::Silence => std::future::pending().await,
            Behaviour::Wait(_) => {
                if let Some(told) = told {
                    told.await;
                }
                let answer = ok("application/json", "{}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    }
}

async fn read(stream: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.trim_end().split("\r\n");
    Some(Seen {
        connection,
        line: lines.next()?.to_owned(),
        fields: lines.map(field).collect(),
    })
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap();
    (name.to_owned(), value.trim().to_owned())
}
