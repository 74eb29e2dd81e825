//! Samples for tests: members as sessions give them, requests as connections give them, and instances of
//! their own on the Redis that all tests share.

use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use water_domain::{AccountId, Limits, Timestamp};
use water_harness::{Redis, wait_until};
use water_http::{RequestHead, RequestIds, TrustedProxies};
use water_keystore::connection::Purpose;
use water_keystore::{Connection, ConnectionSettings, Instance, SessionStart, Usage, UtcDay};
use water_kit::SOON;

use crate::claims::{Grant, Role};
use crate::clock;
use crate::member::Member;
use crate::plans::{InstallationFacts, Plans};
use crate::session::Session;

/// Returns Enterprise, which has access, and Free, which has none.
pub fn plans() -> Plans {
    let plans = Plans::default();
    let read = [("Enterprise", Some(limits())), ("Free", None)];
    plans.set(InstallationFacts {
        plans: read
            .map(|(name, limits)| (name.parse().unwrap(), limits))
            .into(),
        keys_elsewhere: false,
    });
    plans
}

/// Returns Enterprise's limits.
pub fn limits() -> Limits {
    Limits {
        requests_per_minute: 120.try_into().unwrap(),
        requests_per_day: 50_000.try_into().unwrap(),
    }
}

/// Returns the session of somebody with this role in this account.
pub fn session(account: &str, plan: &str, role: Role) -> Session {
    Session {
        subject: format!("subject-of-{account}"),
        name: None,
        sid: None,
        grants: vec![Grant {
            account: account.parse().unwrap(),
            plan: plan.parse().unwrap(),
            role,
        }],
        id_token: String::new(),
        ends: Timestamp::parse("2120-01-01T00:00:00Z").unwrap(),
    }
}

/// Returns the start of a sign-in that took no time.
pub fn at_once(now: Timestamp) -> SessionStart {
    SessionStart {
        asked: now,
        signed_in: now,
    }
}

/// Returns somebody with this role in this account, as a session says.
pub fn member(account: &str, plan: &str, role: Role) -> Member {
    Member::find(&session(account, plan, role), account, &plans()).unwrap()
}

pub fn manager(account: &str) -> Member {
    member(account, "Enterprise", Role::Manager)
}

pub fn viewer(account: &str) -> Member {
    member(account, "Enterprise", Role::Viewer)
}

/// Returns a request with these header fields.
pub fn received(method: &str, target: &str, fields: &[(&str, &str)]) -> RequestHead {
    let request = Request::builder().method(method).uri(target);
    let request = fields.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let (head, ()) = request.body(()).unwrap().into_parts();
    let proxies = TrustedProxies::new(Vec::new());
    RequestHead::new(head, [127, 0, 0, 1].into(), &proxies, &RequestIds::new(1))
}

/// Returns an instance that no other test has, and a connection to its Redis.
pub async fn store() -> (Connection, Instance) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let redis = Redis::shared().await.unwrap();
    let settings = ConnectionSettings::new(&redis.url(), None).unwrap();
    let instance = Instance::new("water", &format!("portal-{number}")).unwrap();
    let connection = settings.connect(Purpose::Directory);
    connected(&Usage::new(connection.clone(), instance.clone())).await;
    (connection, instance)
}

/// Waits until Redis has answered on this connection: on a busy machine it may take longer to connect than the portal
/// waits.
pub async fn connected(usage: &Usage) {
    let account: AccountId = "nobody".parse().unwrap();
    let today = UtcDay::from(clock::now());
    wait_until("Redis to answer", SOON, async || {
        Ok(usage.days(&account, today, 1).await?)
    })
    .await
    .unwrap();
}
