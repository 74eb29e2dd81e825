//! Connections of the client: one to a server, or one to each master of a Redis Cluster.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager};
use redis::cluster::{ClusterClient, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, Pipeline, RedisFuture, Value};

use super::manager::manager;
use super::redirection::Redirection;

/// Destination of commands.
#[derive(Clone)]
pub(super) enum Server {
    One(Arc<Client>),
    /// The cluster, and the node of it that is known.
    Cluster(Arc<ClusterClient>, Arc<Client>),
}

/// A connection that is made when first used. Sends each command once.
#[derive(Clone)]
pub(super) enum LazyConnection {
    One(ConnectionManager),
    /// Sends a command to the master of its keys' slot, wherever that moves, and a pipeline, which
    /// only reads, to that of its first key, or of each.
    Cluster(ClusterConnection, Redirection),
}

impl Server {
    pub(super) fn one(client: Client) -> Self {
        Self::One(Arc::new(client))
    }

    pub(super) fn cluster(client: ClusterClient, node: Client) -> Self {
        Self::Cluster(Arc::new(client), Arc::new(node))
    }

    /// Opens a connection. `answer`: longer than this no answer takes; [`super::Connection`] itself waits less.
    pub(super) fn open(&self, connect: Duration, answer: Duration) -> LazyConnection {
        match self {
            Self::One(client) => LazyConnection::One(manager(Client::clone(client), connect)),
            Self::Cluster(client, node) => {
                let config = ClusterConfig::new()
                    .set_connection_timeout(connect)
                    .set_response_timeout(answer);
                LazyConnection::Cluster(
                    client.get_pending_async_connection_with_config(config),
                    Redirection::new(Arc::clone(node), connect),
                )
            }
        }
    }
}

impl ConnectionLike for LazyConnection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(manager) => manager.req_packed_command(cmd),
            Self::Cluster(cluster, redirection) => Box::pin(async move {
                if let Some(mut master) = redirection.loads_on(cmd) {
                    return master.req_packed_command(cmd).await;
                }
                match cluster.req_packed_command(cmd).await {
                    Err(refusal) => redirection.follow(cmd, refusal).await,
                    answer => answer,
                }
            }),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(manager) => manager.req_packed_commands(pipeline, offset, count),
            Self::Cluster(cluster, redirection) => Box::pin(async move {
                match cluster.req_packed_commands(pipeline, offset, count).await {
                    Err(refusal) => redirection.follow_each(cluster, pipeline, refusal).await,
                    answers => answers,
                }
            }),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(manager) => manager.get_db(),
            Self::Cluster(cluster, _) => cluster.get_db(),
        }
    }
}
