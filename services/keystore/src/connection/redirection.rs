//! Where a master of a Redis Cluster points when a slot moves away from it, or has. It carried
//! nothing out, so asking there is no repetition.

use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

/// The answer of the master that `refusal` points at; the refusal itself if it points nowhere.
///
/// The client would do the same as one of its retries, but it retries what may have been carried out
/// as well. It learns of moved slots in any case.
pub(super) async fn follow(
    cluster: &mut ClusterConnection,
    command: &Cmd,
    refusal: RedisError,
) -> RedisResult<Value> {
    let Some((host, port)) = target(&refusal) else {
        return Err(refusal);
    };
    let mut commands = Pipeline::new();
    // While its keys are on their way the new master answers only who says that it was sent there.
    let under_way = refusal.kind() == ErrorKind::Server(ServerErrorKind::Ask);
    if under_way {
        commands.cmd("ASKING");
    }
    commands.add_command(command.clone());
    let node = SingleNodeRoutingInfo::ByAddress { host, port };
    let mut answers = cluster
        .route_pipeline(commands, usize::from(under_way), 1, node)
        .await?;
    answers.pop().ok_or(refusal)
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
