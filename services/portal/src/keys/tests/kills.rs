//! A replica dies at one of its requests, and the browser sends the same again to another one. It dies at
//! each request to Redis and to the API server, before it is delivered and after.

use std::sync::Arc;

use serde_json::Value;
use water_harness::{Fault, Interceptor, Moment, Which};

use super::NOBODY;
use super::world::{Answer, Made, World};
use crate::member::Member;
use crate::sample::manager;

/// A request of a browser.
struct Request {
    method: &'static str,
    path: Vec<String>,
    body: Value,
}

impl Request {
    fn new(method: &'static str, path: &[&str], body: Value) -> Self {
        let path = path.iter().map(|&part| part.to_owned()).collect();
        Self { method, path, body }
    }

    /// Asks a replica that ends at its `number`th request; returns whether it made so many.
    async fn dies(self, world: &World, member: &Member, number: usize, moment: Moment) -> bool {
        let mut interceptor = Interceptor::default();
        let keys = Arc::new(world.replica(&mut interceptor).await);
        let member = member.clone();
        let replica = tokio::spawn(async move {
            let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
            Answer::ask(&keys, &member, self.method, &path, self.body).await
        });
        if moment == Moment::BeforeDelivery {
            interceptor.order(Which::Number(number), moment, Fault::Cut);
        }
        let (handle, mut seen) = (replica.abort_handle(), 0);
        interceptor.show(move |_, _| {
            seen += 1;
            if seen == number {
                // From here on it does nothing more, as a process that is killed.
                handle.abort();
            }
        });
        replica.await.is_err()
    }
}

/// Runs through the deaths in turn, until a replica ends its work before; `again` is given its own account
/// and answers whether the replica died. A change makes at least so many requests.
async fn every(least: usize, mut again: impl AsyncFnMut(&str, usize, Moment) -> bool) {
    for number in 1.. {
        for (moment, word) in [
            (Moment::BeforeDelivery, "before"),
            (Moment::AfterDelivery, "after"),
        ] {
            let account = format!("{word}-{number}");
            if !again(&account, number, moment).await {
                assert!(
                    number > least,
                    "a change takes more than {} requests",
                    number - 1
                );
                return;
            }
        }
    }
}

#[tokio::test]
async fn fault_42_a_creation_that_dies_at_any_request_and_is_sent_again_makes_one_key() {
    let world = World::new("killed-creation").await;
    every(3, async |account, number, moment| {
        let (member, made) = (manager(account), Made::new(1));
        let request = Request::new("POST", &["keys"], made.body());
        let died = request.dies(&world, &member, number, moment).await;
        let answer = world.creates(&member, &made).await;
        assert!(matches!(answer.status, 200 | 201), "{account}: {answer:?}");
        let key = world.only(&member).await;
        let object = world.object(key["name"].as_str().unwrap());
        assert_eq!(object["spec"]["material"]["hash"]["sha256"], made.sha256);
        died
    })
    .await;
}

#[tokio::test]
async fn fault_42_a_rotation_that_dies_at_any_request_and_is_sent_again_rotates_once() {
    let world = World::new("killed-rotation").await;
    every(3, async |account, number, moment| {
        let member = manager(account);
        let [old, new] = [1, 2].map(Made::new);
        let name = world.created(&member, &old).await;
        world.publishes(&name, None);
        let request = Request::new("POST", &["keys", &name, "rotation"], new.rotation(&old));
        let died = request.dies(&world, &member, number, moment).await;
        let answer = world.rotates(&member, &name, &old, &new).await;
        assert_eq!(answer.status, 200, "{account}: {answer:?}");
        assert_eq!(world.only(&member).await["keyId"], new.key_id);
        let object = world.object(&name);
        assert_eq!(object["spec"]["material"]["hash"]["sha256"], new.sha256);
        // Once made, published once, changed once.
        assert_eq!(object["metadata"]["generation"], 2);
        died
    })
    .await;
}

#[tokio::test]
async fn fault_42_a_revocation_that_dies_at_any_request_and_is_sent_again_leaves_no_key() {
    let world = World::new("killed-revocation").await;
    every(2, async |account, number, moment| {
        let member = manager(account);
        let name = world.created(&member, &Made::new(1)).await;
        let request = Request::new("DELETE", &["keys", &name], NOBODY);
        let died = request.dies(&world, &member, number, moment).await;
        let answer = world.revokes(&member, &name).await;
        assert!(matches!(answer.status, 202 | 404), "{account}: {answer:?}");
        assert!(world.lists(&member).await.is_empty(), "{account}");
        died
    })
    .await;
}
