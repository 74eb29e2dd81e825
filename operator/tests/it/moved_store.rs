//! Redis is moved while rollouts are stopped, or for the operator only: a gate still reads the former one. The
//! leader that knew it writes it too. A deletion waits for the end of the gate's pod, however long that takes,
//! since another leader does not know the former Redis. And Redis is moved back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;
use water_harness::{Process, Proxy, Redis};

use crate::Result;
use crate::gate::{GRACE, Gate, Started, end_pod, pod};
use crate::installation::{complete, paused};
use crate::steps::{
    OBJECT, becomes, calls, delete, edit, holds, keeps_term, logs, measured, message,
    one_leadership, revoke, says, spoil, spoil_api, strip, term, until,
};
use crate::store_refusals::{USER, with_user};
use crate::world::{API, World, brought};

/// Redis of the operator and of the gates.
pub const BOTH: [&str; 2] = ["operator-url", "gate-url"];

/// Gives a pod the annotations that the operator writes into the gates' template.
fn of_template(world: &World, pod: &str) -> Result {
    let deployment = world.get(&format!("deployment/{API}-gate"))?;
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    let annotated = json!({ "metadata": { "annotations": annotations } });
    world.patch(&format!("pod/{pod}"), &annotated, &[])
}

/// Has these URLs name another Redis.
pub fn name_store(world: &mut World, urls: &[&str], to: &str) -> Result {
    let urls = urls.iter().map(|url| ((*url).to_owned(), to.into()));
    let urls: serde_json::Map<String, Value> = urls.collect();
    world.patch("secret/redis", &json!({ "stringData": urls }), &[])?;
    world.redis_url = to.into();
    Ok(())
}

/// The Redis in which the status says that the directory is whole.
pub fn store(api: &Value) -> Option<&str> {
    let store = api["status"]["directoryStore"].as_str();
    store.filter(|store| !store.is_empty())
}

/// The same, once the status names the present one, and until it names the other.
pub async fn move_store(world: &mut World, urls: &[&str], to: &Redis) -> Result {
    let is_named = |found: &Value| store(found).is_some();
    let before = becomes(world, OBJECT, "in a Redis", is_named).await?;
    name_store(world, urls, &to.url())?;
    becomes(world, OBJECT, "in the other Redis", |found| {
        store(found).is_some_and(|now| Some(now) != store(&before))
    })
    .await
    .map(drop)
}

/// Waits until acme's condition says of this pod that it reads another Redis.
async fn awaits_end(world: &World, pod: &str) -> Result {
    let words = "named another Redis";
    let awaits = |found: &Value| {
        let is_named = found["status"]["waitingFor"] == json!([pod]);
        is_named && message(found, "Ready").contains(words)
    };
    becomes(world, "apikey/acme", words, awaits).await.map(drop)
}

/// Waits until the gate accepts a key, or refuses it.
async fn judged(world: &World, gate: &Gate, digit: char, is_accepted: bool) -> Result {
    let hash = digit.to_string().repeat(64);
    let what = format!("the gate to accept {digit}: {is_accepted}");
    until(world, &what, async || {
        ensure!(gate.accepts(&hash)? == is_accepted, "{digit}");
        Ok(())
    })
    .await
}

/// Makes `urls` name another Redis while a gate reads the former one. The keys of `acme` and `other` are in force in
/// both. The last value that is returned keeps the stores running.
async fn moved_ahead(
    namespace: &str,
    urls: &[&str],
    [acme, other]: [char; 2],
) -> anyhow::Result<(World, Gate, Arc<Process>, [Redis; 2])> {
    let (former, mut world, operator) = World::on_own_redis(namespace).await?;
    complete(&world, "1.2.3").await?;
    world.in_force(&brought("acme", acme)).await?;
    world.in_force(&brought("other", other)).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    of_template(&world, &gate.name)?;
    let present = Redis::start().await?;
    world.apply(&paused())?;
    world.condition(OBJECT, "Ready", "True/Paused").await?;
    move_store(&mut world, urls, &present).await?;
    Ok((world, gate, operator, [former, present]))
}

fn suspend(world: &World, name: &str, suspend: bool) -> Result {
    edit(world, name, &json!({ "suspend": suspend }))
}

#[tokio::test]
async fn a_deletion_waits_for_the_end_of_a_gate_whose_redis_no_leader_knows_any_more() -> Result {
    let moved = moved_ahead("moved-store", &BOTH, ['a', '9']).await?;
    let (world, gate, operator, _stores) = moved;
    operator.kill()?;
    let _next = world.operator("operator-0")?;
    delete(&world, "acme")?;
    awaits_end(&world, &gate.name).await?;
    assert!(gate.accepts(&"a".repeat(64))?);
    end_pod(&world, &gate.name)?;
    world.gone("apikey/acme").await
}

/// Checks that a restriction after a move reaches the gate that reads the former Redis, too, and that a deletion waits
/// for its end all the same.
async fn written_too(namespace: &str, urls: &[&str]) -> Result {
    let digits @ [acme, other] = ['b', '2'];
    let start = async |namespace: &str| {
        let (world, gate, _operator, stores) = moved_ahead(namespace, urls, digits).await?;
        anyhow::Ok((world, (gate, stores)))
    };
    // The next leader does not know the former Redis.
    one_leadership(namespace, start, async |world, (gate, _)| {
        for suspended in [true, false] {
            suspend(world, "other", suspended)?;
            judged(world, gate, other, !suspended).await?;
        }
        delete(world, "acme")?;
        judged(world, gate, acme, false).await?;
        awaits_end(world, &gate.name).await?;
        end_pod(world, &gate.name)?;
        world.gone("apikey/acme").await
    })
    .await
}

#[tokio::test]
async fn a_gate_that_reads_the_redis_before_the_present_one_is_told_what_changes() -> Result {
    written_too("moved-written", &BOTH).await
}

#[tokio::test]
async fn a_gate_that_was_forgotten_when_the_operators_redis_was_moved_is_told_what_changes()
-> Result {
    written_too("moved-forgotten", &["operator-url"]).await
}

#[tokio::test]
async fn a_former_redis_that_cannot_be_written_is_reported_while_a_gate_reads_it() -> Result {
    let start = async |namespace: &str| {
        let (world, gate, operator, stores) = moved_ahead(namespace, &BOTH, ['3', '4']).await?;
        anyhow::Ok((world, (gate, operator, stores)))
    };
    // The next leader does not know the former Redis.
    one_leadership(
        "moved-unwritten",
        start,
        async |world, (gate, operator, stores)| {
            // A write shows that the operator knows the gate as a reader.
            suspend(world, "other", true)?;
            judged(world, gate, '4', false).await?;
            stores[0].kill()?;
            let words = "the former Redis, which gates still read, cannot be written";
            says(world, OBJECT, "Degraded=True/StoreUnavailable", words).await?;
            logs(world, operator, words).await?;
            let counted = "water_operator_store_failures_total{reason=\"down\"}";
            measured(world, operator, counted).await?;
            end_pod(world, &gate.name)?;
            let is_over = |found: &Value| !message(found, "Degraded").contains(words);
            becomes(world, OBJECT, "rid of the former Redis", is_over)
                .await
                .map(drop)
        },
    )
    .await
}

#[tokio::test]
async fn a_wrong_password_for_the_same_redis_ends_no_restriction_and_the_right_one_is_used()
-> Result {
    let digits @ [other, first] = ['6', '0'];
    let start = async |namespace: &str| {
        let (redis, world, _operator) = with_user(namespace).await?;
        world.in_force(&brought("other", other)).await?;
        let gate = Gate::start_at(&redis.url(), &world, "gate-0", GRACE).await?;
        for digit in digits {
            judged(&world, &gate, digit, true).await?;
        }
        let wrong = redis.url_as(USER, "wrong");
        let url = json!({ "stringData": { "operator-url": wrong } });
        world.patch("secret/redis", &url, &[])?;
        let refused = "False/StoreWrongPassword";
        world.condition(OBJECT, "DirectorySynced", refused).await?;
        anyhow::Ok((world, (gate, redis)))
    };
    // The next leader knows the wrong password only.
    one_leadership("moved-password", start, async |world, (gate, redis)| {
        let user = |right| ["ACL", "SETUSER", USER, right];
        suspend(world, "other", true)?;
        judged(world, gate, other, false).await?;
        // An error, too, is not the end.
        redis.command(&user("-evalsha")).await?;
        until(world, "Redis to refuse a script", async || {
            let refused = redis.command(&["ACL", "LOG"]).await?;
            ensure!(refused.contains("evalsha"), "{refused}");
            Ok(())
        })
        .await?;
        redis.command(&user("+@all")).await?;
        suspend(world, "first", true)?;
        judged(world, gate, first, false).await?;
        let url = json!({ "stringData": { "operator-url": redis.url() } });
        world.patch("secret/redis", &url, &[])?;
        world.synced().await?;
        suspend(world, "other", false)?;
        judged(world, gate, other, true).await
    })
    .await
}

#[tokio::test]
async fn a_former_redis_that_was_dead_before_the_move_is_not_reported() -> Result {
    let start = async |namespace: &str| {
        let second = Redis::start().await?;
        let (first, mut world, _operator) = World::on_own_redis(namespace).await?;
        world.in_force(&brought("acme", 'a')).await?;
        // It might read that Redis, for all that the operator can ask.
        pod(&world, "gate-0", true, Started::Before)?;
        let is_named = |found: &Value| store(found).is_some();
        becomes(&world, OBJECT, "in a Redis", is_named).await?;
        first.kill()?;
        move_store(&mut world, &BOTH, &second).await?;
        anyhow::Ok((world, (first, second)))
    };
    // The next leader does not know the former Redis.
    one_leadership("moved-dead", start, async |world, (_first, second)| {
        // The dead one is asked as often, unless a write to it was under way when it died: then it was given up.
        let before = calls(second, "get").await?;
        until(world, "checks of the present Redis", async || {
            let now = calls(second, "get").await?;
            ensure!(now >= before + 5, "{before} calls before, now {now}");
            Ok(())
        })
        .await?;
        world.apply(&paused())?;
        let found = becomes(world, OBJECT, "told of its last edit", |found| {
            found["status"]["observedGeneration"] == found["metadata"]["generation"]
        })
        .await?;
        let degraded = message(&found, "Degraded");
        ensure!(!degraded.contains("the former Redis"), "{degraded}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_stripped_key_stays_in_the_former_redis_where_no_sweep_counts() -> Result {
    let digits @ [acme, other] = ['7', '8'];
    let (world, gate, operator, _stores) = moved_ahead("moved-stripped", &BOTH, digits).await?;
    // It would put the finalizer back.
    operator.signal(Signal::SIGSTOP)?;
    strip(&world, "acme").await?;
    operator.signal(Signal::SIGCONT)?;
    suspend(&world, "other", true)?;
    judged(&world, &gate, other, false).await?;
    // The comparison that wrote the suspension knew that this ApiKey is gone.
    assert!(gate.accepts(&acme.to_string().repeat(64))?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_name_of_the_same_redis_costs_one_claim() -> Result {
    let (redis, mut world, operator) = World::on_own_redis("moved-name").await?;
    complete(&world, "1.2.3").await?;
    world.in_force(&brought("acme", '5')).await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    let name = Proxy::before(redis.address()).await?;
    let before = term(&world).await?;
    let url = format!("redis://{}/", name.address());
    name_store(&mut world, &BOTH, &url)?;
    let claimed = until(&world, "the claim by its other name", async || {
        let term = term(&world).await?;
        ensure!(term > before, "still term {term}");
        Ok(term)
    })
    .await?;
    let begun = Instant::now();
    // A directory that two write is claimed by turns, once a second.
    while begun.elapsed() < Duration::from_secs(5) {
        for suspended in [true, false] {
            suspend(&world, "acme", suspended)?;
            judged(&world, &gate, '5', !suspended).await?;
        }
    }
    keeps_term(&world, claimed, &operator.log()).await
}

/// Redis is moved, a key is revoked, and Redis is moved back. The leader is killed before that, if so asked.
async fn moved_back(namespace: &str, digits: [char; 3], is_killed: bool) -> Result {
    let (first, mut world, mut operator) = World::on_own_redis(namespace).await?;
    let [revoked, kept, later] = digits;
    world.in_force(&brought("revoked", revoked)).await?;
    world.in_force(&brought("kept", kept)).await?;
    let second = Redis::start().await?;
    move_store(&mut world, &BOTH, &second).await?;
    revoke(&world, "revoked").await?;
    if is_killed {
        operator.kill()?;
        operator = world.operator("operator-0")?;
    }
    move_store(&mut world, &BOTH, &first).await?;
    world.in_force(&brought("later", later)).await?;
    let published = world.directory()?.stored().await?;
    let published: BTreeSet<String> = published.keys().map(ToString::to_string).collect();
    let wanted = [kept, later].map(|digit| digit.to_string().repeat(64));
    assert_eq!(published, wanted.into(), "{}", operator.log_end());
    Ok(())
}

#[tokio::test]
async fn a_key_that_was_revoked_in_another_redis_is_not_revived_when_the_first_is_returned_to()
-> Result {
    moved_back("moved-back", ['c', 'd', 'e'], false).await
}

#[tokio::test]
async fn a_key_that_was_revoked_in_another_redis_is_not_revived_by_another_leader() -> Result {
    moved_back("moved-back-led", ['f', '0', '1'], true).await
}

#[tokio::test]
async fn a_key_that_was_revoked_in_another_redis_is_not_revived_beside_an_api_that_cannot_be_read()
-> Result {
    let (first, mut world, operator) = World::on_own_redis("moved-back-unread").await?;
    world.in_force(&brought("revoked", '3')).await?;
    world.in_force(&brought("kept", '4')).await?;
    let second = Redis::start().await?;
    move_store(&mut world, &BOTH, &second).await?;
    revoke(&world, "revoked").await?;
    operator.kill()?;
    spoil_api(&world)?;
    name_store(&mut world, &BOTH, &first.url())?;
    let _next = world.operator("operator-0")?;
    suspend(&world, "kept", true)?;
    let suspended = "444444444444 Enterprise Suspended".to_owned();
    let published = until(&world, "the suspension", async || {
        let published = world.published().await?;
        ensure!(published.contains(&suspended), "{published:?}");
        Ok(published)
    })
    .await?;
    assert_eq!(published, [suspended]);
    Ok(())
}

#[tokio::test]
async fn a_key_that_cannot_be_read_moves_with_the_directory() -> Result {
    let (first, mut world, _operator) = World::on_own_redis("moved-unreadable").await?;
    world.in_force(&brought("comma", '6')).await?;
    spoil(&world, "comma").await?;
    let second = Redis::start().await?;
    move_store(&mut world, &BOTH, &second).await?;
    holds(&world, &["666666666666 Enterprise Active"]).await?;
    suspend(&world, "comma", true)?;
    holds(&world, &["666666666666 Enterprise Suspended"]).await?;
    move_store(&mut world, &BOTH, &first).await?;
    holds(&world, &["666666666666 Enterprise Suspended"]).await
}
