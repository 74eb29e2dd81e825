//! Everything that runs while the gate is compared, and what is sent to whom.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use water_keystore::{Instance, Writer};

use super::process::Gate;
use super::references::References;
use super::workload::{BODY, PLAN, TARGET, USED_UP, contents};
use super::{Scale, name};
use crate::keys::Keys;
use crate::load::{Expected, Load, Requests};
use crate::nginx::Nginx;
use crate::rounds::Variant;
use crate::store::Store;

/// Accounts of [`Site::revocation`] that send its steady load; the keys after theirs are revoked.
pub const STEADY_ACCOUNTS: usize = 600;

/// All programs but the gates of [`super::startup`].
pub struct Site {
    pub store: Store,
    pub few: Directory,
    pub many: Directory,
    pub revocation: Directory,
    /// Changes that one.
    pub revocation_writer: Writer,
    references: References,
    gate: Gate,
    quiet_gate: Gate,
    /// Its Redis is gone, and its grace is longer than any run.
    alone: Gate,
    /// Keeps the port of that Redis: nothing else may listen there.
    _lost: Store,
    served: Keys,
    used_up: Keys,
    unknown: Keys,
    connections: usize,
}

/// A key directory for which there is a gate of its own.
pub struct Directory {
    pub instance: Instance,
    pub keys: Keys,
}

impl Directory {
    fn new(name: &'static str, count: usize) -> Result<Self> {
        Ok(Self {
            instance: Instance::new("water", name)?,
            keys: Keys::new(name, count),
        })
    }
}

impl Site {
    /// Fills the directories and starts the programs.
    pub async fn start(scale: Scale) -> Result<Self> {
        let instance = Instance::new("water", "bench")?;
        let (few, many) = (
            Directory::new("few", scale.few)?,
            Directory::new("many", scale.many)?,
        );
        let (served, used_up) = (
            Keys::new("served", scale.keys),
            Keys::new("used-up", scale.keys),
        );
        eprintln!(
            "filling key directories, the largest with {} keys",
            scale.many
        );
        let doomed = scale.rounds * scale.revocations;
        let revocation = Directory::new("revocation", STEADY_ACCOUNTS + doomed)?;
        let instances = [
            &instance,
            &few.instance,
            &many.instance,
            &revocation.instance,
        ];
        let store = Store::start(&instances).await?;
        let entries = served.entries(PLAN).chain(used_up.entries(USED_UP));
        store.publish(&instance, contents(entries)).await?;
        let lost = Store::start(&[&instance]).await?;
        lost.publish(&instance, contents(served.entries(PLAN)))
            .await?;
        for Directory { instance, keys } in [&few, &many] {
            store
                .publish(instance, contents(keys.entries(PLAN)))
                .await?;
        }
        let revocable = contents(revocation.keys.entries(PLAN));
        let revocation_writer = store.publish(&revocation.instance, revocable).await?;
        use_up(&store, &instance, &used_up).await?;
        let references = References::start(&store, &instance, &served).await?;
        let service = references.service.address();
        let no_log = [("WATER_LOG", "info,access=off")];
        let long_grace = [("WATER_GRACE_SECONDS", "3600")];
        let alone = Gate::start(&lost, &instance, service, &long_grace).await?;
        lost.redis.kill()?;
        Ok(Self {
            gate: Gate::start(&store, &instance, service, &[]).await?,
            quiet_gate: Gate::start(&store, &instance, service, &no_log).await?,
            alone,
            _lost: lost,
            unknown: Keys::new("unknown", scale.keys),
            connections: scale.connections,
            store,
            few,
            many,
            revocation,
            revocation_writer,
            references,
            served,
            used_up,
        })
    }

    /// A gate of a directory of its own.
    pub async fn gate_of(&self, directory: &Directory) -> Result<Gate> {
        let service = self.references.service.address();
        Gate::start(&self.store, &directory.instance, service, &[]).await
    }

    /// How often the limiter's script has run in Redis. Nothing else asks for a list's length.
    pub async fn limiter_runs(&self) -> Result<u64> {
        self.store.calls("llen").await
    }

    /// What takes turns.
    pub fn variants(&self, few: &Gate, many: &Gate) -> Vec<Variant> {
        let requests = |keys: &Keys| Arc::new(Requests::new(TARGET, Arc::clone(&keys.texts)));
        let served = requests(&self.served);
        let nginx = |name, nginx: &Nginx| self.variant(name, nginx.address(), nginx.id(), &served);
        let gate =
            |name, gate: &Gate, requests| self.variant(name, gate.address(), gate.id(), requests);
        let References {
            plain,
            quiet_plain,
            lua,
            quiet_lua,
            ..
        } = &self.references;
        vec![
            nginx(name::NGINX, plain),
            nginx(name::LUA, lua),
            gate(name::GATE, &self.gate, &served),
            gate(name::ALONE, &self.alone, &served),
            gate(name::UNKNOWN, &self.gate, &requests(&self.unknown)).answered(401),
            gate(name::REFUSED, &self.gate, &requests(&self.used_up)).answered(429),
            nginx(name::QUIET_NGINX, quiet_plain),
            nginx(name::QUIET_LUA, quiet_lua),
            gate(name::QUIET_GATE, &self.quiet_gate, &served),
            gate(name::FEW, few, &requests(&self.few.keys)),
            gate(name::MANY, many, &requests(&self.many.keys)),
            gate(name::ONE, &self.gate, &served).connections(1),
            nginx(name::ONE_NGINX, plain).connections(1),
        ]
    }

    /// One that is answered by the service.
    fn variant(
        &self,
        name: &'static str,
        address: SocketAddr,
        process: u32,
        requests: &Arc<Requests>,
    ) -> Variant {
        Variant {
            name,
            load: Load {
                address,
                connections: self.connections,
                requests: Arc::clone(requests),
                expected: Expected {
                    status: 200,
                    length: Some(BODY.len()),
                },
                pace: None,
            },
            process,
        }
    }
}

/// Says that each account has made its one request of the day, and that the day is tomorrow: as
/// after a clock that was set back, no slot opens before tomorrow's end, whenever this runs.
async fn use_up(store: &Store, instance: &Instance, keys: &Keys) -> Result<()> {
    let made = format!("{} 1", store.day().await? + 1);
    let mut words = vec!["MSET".to_owned()];
    for known in keys.known() {
        words.extend([instance.day(&known.account.parse()?), made.clone()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    store.redis.command(&words).await?;
    Ok(())
}
