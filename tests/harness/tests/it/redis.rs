//! A Redis that can be asked, paused, killed and started again.

use std::time::Duration;

use tokio::time::timeout;
use water_harness::Redis;

type Result = anyhow::Result<()>;

#[tokio::test]
async fn commands_get_their_replies() -> Result {
    let redis = Redis::shared().await?;
    redis
        .command(&["RPUSH", "harness:list", "a", "", "c"])
        .await?;
    let reply = redis
        .command(&["LRANGE", "harness:list", "0", "-1"])
        .await?;
    assert_eq!(reply, "*3\r\n$1\r\na\r\n$0\r\n\r\n$1\r\nc\r\n");
    Ok(())
}

#[tokio::test]
async fn a_refused_command_is_an_error() -> Result {
    let error = Redis::shared().await?.command(&["NOPE"]).await.unwrap_err();
    assert!(
        error.to_string().starts_with("NOPE: ERR unknown command"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn passwords_and_acl_users_are_lines_of_the_configuration() -> Result {
    let redis =
        Redis::start_with(&["requirepass secret", "user gate on >other ~wd:* +@read"]).await?;
    let users = redis.command(&["ACL", "LIST"]).await?;
    assert!(users.contains("user gate on"), "{users}");
    let address = format!("127.0.0.1:{}", redis.port());
    assert_eq!(redis.url(), format!("redis://default:secret@{address}/"));
    assert_eq!(
        redis.url_as("gate", "other"),
        format!("redis://gate:other@{address}/")
    );
    Ok(())
}

#[tokio::test]
async fn a_paused_server_answers_when_it_goes_on() -> Result {
    let redis = Redis::start().await?;
    redis.pause()?;
    let mut ping = std::pin::pin!(redis.command(&["PING"]));
    assert!(
        timeout(Duration::from_millis(200), &mut ping)
            .await
            .is_err()
    );
    redis.resume()?;
    assert_eq!(ping.await?, "+PONG\r\n");
    Ok(())
}

#[tokio::test]
async fn a_killed_server_starts_again_empty_on_its_port() -> Result {
    let redis = Redis::start().await?;
    let port = redis.port();
    redis.command(&["SET", "key", "value"]).await?;
    redis.kill()?;
    assert!(redis.command(&["PING"]).await.is_err());
    redis.start_again().await?;
    assert_eq!(redis.command(&["GET", "key"]).await?, "$-1\r\n");
    assert_eq!(redis.port(), port);
    Ok(())
}
