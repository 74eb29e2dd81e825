//! Redirection by a master of a Redis Cluster whose slot is moving or has moved. That master ran nothing, so asking the
//! other one is no repetition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager};
use redis::cluster_async::ClusterConnection;
use redis::{
    Arg, Client, Cmd, ConnectionAddr, ErrorKind, Pipeline, RedisError, RedisResult,
    ServerErrorKind, Value,
};

use super::manager::manager;

/// Connections that are kept; one more, and all are made again: masters are replaced under other addresses.
const MASTERS: usize = 64;

/// Host, which may be an address of IPv6, and port.
type Address = (String, u16);

/// Connections to the masters that others point at. Each is made when first used, and then kept: while a slot moves,
/// every command for its keys is sent on. Clones share them.
///
/// The client has no connection to a master without slots, nor to one whose slots it has not heard of yet. Asked for
/// that one all the same, it would refuse, and replace all the connections that it has.
#[derive(Clone)]
pub(super) struct Redirection {
    /// Any node of the cluster: user, password and TLS are the same at all of them.
    node: Arc<Client>,
    /// Time limit of making a connection.
    connect: Duration,
    masters: Arc<Mutex<HashMap<Address, ConnectionManager>>>,
    /// Master that a command of this clone was last sent on to.
    last: Option<ConnectionManager>,
}

impl Redirection {
    pub(super) fn new(node: Arc<Client>, connect: Duration) -> Self {
        Self {
            node,
            connect,
            masters: Arc::default(),
            last: None,
        }
    }

    /// The answer of the master that `refusal` points at; the refusal itself if it points nowhere.
    ///
    /// The client would do the same as one of its retries, but it retries what may have been carried out
    /// as well. It learns of moved slots in any case.
    pub(super) async fn follow(
        &mut self,
        command: &Cmd,
        refusal: RedisError,
    ) -> RedisResult<Value> {
        let commands = std::slice::from_ref(command);
        let mut answers = self.follow_together(commands, refusal).await?;
        answers
            .pop()
            .ok_or((ErrorKind::UnexpectedReturnType, "no answer").into())
    }

    /// The answers to commands that only read, of which one was refused: while a slot moves some of its
    /// keys are in one place and some in the other, so that each key is asked for on its own.
    pub(super) async fn follow_each(
        &mut self,
        cluster: &mut ClusterConnection,
        commands: &Pipeline,
        refusal: RedisError,
    ) -> RedisResult<Vec<Value>> {
        if target(&refusal).is_none() {
            return Err(refusal);
        }
        let commands: Vec<Cmd> = commands.cmd_iter().cloned().collect();
        let mut answers = Vec::with_capacity(commands.len());
        // A command without a key goes with the key before it: it asks about the server that has that key.
        for part in commands.chunk_by(|_, next| !names_a_key(next)) {
            let mut together = Pipeline::new();
            add(&mut together, part);
            let answered = cluster.req_packed_commands(&together, 0, part.len()).await;
            answers.extend(match answered {
                Err(refusal) => self.follow_together(part, refusal).await?,
                Ok(answered) => answered,
            });
        }
        Ok(answers)
    }

    /// The master to load a script on, where `command` does that after another one was sent on: the client loads it on
    /// the masters that it has connections to, and the script is missing on this one.
    pub(super) fn loads_on(&self, command: &Cmd) -> Option<ConnectionManager> {
        self.last
            .clone()
            .filter(|_| begins_with(command, b"SCRIPT"))
    }

    /// The answers of the master that `refusal` points at, to commands of which the first names a key
    /// and no other names another.
    async fn follow_together(
        &mut self,
        commands: &[Cmd],
        refusal: RedisError,
    ) -> RedisResult<Vec<Value>> {
        let Some(address) = target(&refusal) else {
            return Err(refusal);
        };
        let mut together = Pipeline::new();
        // While its keys are on their way the new master answers only a client which says that it was sent there.
        let under_way = refusal.kind() == ErrorKind::Server(ServerErrorKind::Ask);
        if under_way {
            together.cmd("ASKING");
        }
        add(&mut together, commands);
        let mut master = self.master(address)?;
        self.last = Some(master.clone());
        master
            .req_packed_commands(&together, usize::from(under_way), commands.len())
            .await
    }

    /// The connection to a master, which makes itself again after it broke.
    fn master(&self, address: Address) -> RedisResult<ConnectionManager> {
        // The map is whole between any two statements.
        let mut masters = self.masters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(master) = masters.get(&address) {
            return Ok(master.clone());
        }
        if masters.len() >= MASTERS {
            masters.clear();
        }
        let node = self.node.get_connection_info();
        let info = node.clone().set_addr(reached_as(node.addr(), &address));
        let master = manager(Client::open(info)?, self.connect);
        masters.insert(address, master.clone());
        Ok(master)
    }
}

/// The address of another node of the cluster, with the TLS of this one.
fn reached_as(node: &ConnectionAddr, (host, port): &Address) -> ConnectionAddr {
    let (host, port) = (host.clone(), *port);
    match node {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    }
}

fn add(pipeline: &mut Pipeline, commands: &[Cmd]) {
    for command in commands {
        pipeline.add_command(command.clone());
    }
}

/// `INFO` is the only command in a pipeline of this crate that names no key.
fn names_a_key(command: &Cmd) -> bool {
    !begins_with(command, b"INFO")
}

fn begins_with(command: &Cmd, word: &[u8]) -> bool {
    command.args_iter().next() == Some(Arg::Simple(word))
}

/// The master that a refusal points at.
fn target(refusal: &RedisError) -> Option<Address> {
    let (address, _slot) = refusal.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_moving_slot_points_anywhere() {
        let refusal = |kind, detail: &str| {
            RedisError::from((ErrorKind::Server(kind), "refused", detail.to_owned()))
        };
        for (kind, detail, expected) in [
            (
                ServerErrorKind::Moved,
                "3999 10.0.0.1:6381",
                Some("10.0.0.1"),
            ),
            (ServerErrorKind::Ask, "3999 fd00::1:6381", Some("fd00::1")),
            (ServerErrorKind::Ask, "3999", None),
            (ServerErrorKind::ClusterDown, "3999 10.0.0.1:6381", None),
        ] {
            let expected = expected.map(|host| (host.to_owned(), 6381));
            assert_eq!(target(&refusal(kind, detail)), expected, "{detail}");
        }
    }

    #[test]
    fn another_node_is_reached_with_the_same_tls() {
        let other = ("10.0.0.1".to_owned(), 6381);
        for (url, expected) in [
            ("redis://redis", "redis://10.0.0.1:6381"),
            ("rediss://redis", "rediss://10.0.0.1:6381"),
        ] {
            let client = |url: &str| Client::open(url).unwrap();
            let (node, expected) = (client(url), client(expected));
            let reached = reached_as(node.get_connection_info().addr(), &other);
            assert_eq!(&reached, expected.get_connection_info().addr());
        }
    }
}
