//! Redirection by a master of a Redis Cluster whose slot is moving or has moved. That master ran nothing, so asking the
//! other one is no repetition.

use redis::aio::ConnectionLike;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{Arg, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

/// The answer of the master that `refusal` points at; the refusal itself if it points nowhere.
///
/// The client would do the same as one of its retries, but it retries what may have been carried out
/// as well. It learns of moved slots in any case.
pub(super) async fn follow(
    cluster: &mut ClusterConnection,
    command: &Cmd,
    refusal: RedisError,
) -> RedisResult<Value> {
    let commands = std::slice::from_ref(command);
    let mut answers = follow_together(cluster, commands, refusal).await?;
    answers
        .pop()
        .ok_or((ErrorKind::UnexpectedReturnType, "no answer").into())
}

/// The answers to commands that only read, of which one was refused: while a slot moves some of its
/// keys are in one place and some in the other, so that each key is asked for on its own.
pub(super) async fn follow_each(
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
            Err(refusal) => follow_together(cluster, part, refusal).await?,
            Ok(answered) => answered,
        });
    }
    Ok(answers)
}

/// The answers of the master that `refusal` points at, to commands of which the first names a key
/// and no other names another.
async fn follow_together(
    cluster: &mut ClusterConnection,
    commands: &[Cmd],
    refusal: RedisError,
) -> RedisResult<Vec<Value>> {
    let Some((host, port)) = target(&refusal) else {
        return Err(refusal);
    };
    let mut together = Pipeline::new();
    // While its keys are on their way the new master answers only a client which says that it was sent there.
    let under_way = refusal.kind() == ErrorKind::Server(ServerErrorKind::Ask);
    if under_way {
        together.cmd("ASKING");
    }
    add(&mut together, commands);
    let node = SingleNodeRoutingInfo::ByAddress { host, port };
    cluster
        .route_pipeline(together, usize::from(under_way), commands.len(), node)
        .await
}

fn add(pipeline: &mut Pipeline, commands: &[Cmd]) {
    for command in commands {
        pipeline.add_command(command.clone());
    }
}

/// `INFO` is the only command in a pipeline of this crate that names no key.
fn names_a_key(command: &Cmd) -> bool {
    command.args_iter().next() != Some(Arg::Simple(b"INFO"))
}

/// The host, which may be an address of IPv6, and port.
fn target(refusal: &RedisError) -> Option<(String, u16)> {
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
}
