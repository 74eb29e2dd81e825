//! Programs that run while the gate is compared, and the loads of the variants.

use anyhow::{Context, Result};
use water_keystore::{Instance, Writer};

use super::{Scale, name};
use crate::keys::{Keys, LIMITS, PLAN, USED_UP, contents};
use crate::load::{Load, Requests};
use crate::nginx::{BODY, Configuration, Nginx};
use crate::programs::{IDENTITY, Server};
use crate::rounds::Variant;
use crate::store::{PASSWORD, Store, user};

/// Accounts of [`Site::revocation`] that send its steady load; the keys after theirs are revoked.
pub const STEADY_ACCOUNTS: usize = 600;

/// Gathered, as the gate gathers its lines.
const PLAIN_LOG: &str = "access.log access buffer=64k flush=1s";
const ACCOUNT_LOG: &str = "access.log account buffer=64k flush=1s";
const NO_LOG: &str = "off";

const LUA_MODULES: &str = "\
load_module /usr/lib/nginx/modules/ndk_http_module.so;\n\
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;";

/// The gate's own script: the way of asking it is compared, not its work.
const LIMITER: &str = include_str!("../../../../services/keystore/src/limiter.lua");

/// Programs but the gates of [`super::startup`].
pub struct Site {
    pub store: Store,
    pub few: Directory,
    pub many: Directory,
    pub revocation: Directory,
    /// Writer of that directory.
    pub revocation_writer: Writer,
    service: Nginx,
    plain: Nginx,
    quiet_plain: Nginx,
    lua: Nginx,
    quiet_lua: Nginx,
    gate: Server,
    quiet_gate: Server,
    /// Gate whose Redis is gone, and whose grace is longer than any run.
    alone: Server,
    /// Keeps the port of that Redis: nothing else may listen there.
    _lost: Store,
    served: Keys,
    used_up: Keys,
    unknown: Keys,
    connections: usize,
}

/// Key directory of a separate instance.
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

    async fn publish(&self, store: &Store) -> Result<Writer> {
        let contents = contents(self.keys.entries(PLAN));
        store.publish(&self.instance, contents).await
    }
}

impl Site {
    /// Fills the directories and starts the programs.
    pub async fn start(scale: Scale) -> Result<Self> {
        let keys = scale.many;
        eprintln!("filling key directories, the largest with {keys} keys");
        let instance = Instance::new("water", "bench")?;
        let few = Directory::new("few", scale.few)?;
        let many = Directory::new("many", scale.many)?;
        let doomed = scale.rounds * scale.revocations;
        let revocation = Directory::new("revocation", STEADY_ACCOUNTS + doomed)?;
        let others = [&few, &many, &revocation].map(|directory| &directory.instance);
        let store = Store::start(&[&[&instance], &others[..]].concat()).await?;
        few.publish(&store).await?;
        many.publish(&store).await?;
        let revocation_writer = revocation.publish(&store).await?;
        let served = Keys::new("served", scale.keys);
        let used_up = Keys::new("used-up", scale.keys);
        let entries = served.entries(PLAN).chain(used_up.entries(USED_UP));
        store.publish(&instance, contents(entries)).await?;
        use_up(&store, &instance, &used_up).await?;
        let lost = Store::start(&[&instance]).await?;
        let entries = served.entries(PLAN);
        lost.publish(&instance, contents(entries)).await?;

        let service = Nginx::service().await?;
        let address = service.address();
        let plain = |log: &str| Configuration {
            server: include_str!("../../nginx/plain.conf"),
            values: vec![
                ("service", address.to_string()),
                ("access_log", log.to_owned()),
            ],
            ..Configuration::default()
        };
        let lua = with_lua(&store, &instance, &served).await?;
        let lua = |log: &str| {
            let mut lua = lua.clone();
            lua.values.push(("service", address.to_string()));
            lua.values.push(("access_log", log.to_owned()));
            lua
        };
        let no_log = [("WATER_LOG", "info,access=off")];
        let long_grace = [("WATER_GRACE_SECONDS", "3600")];
        let alone = Server::gate(&lost, &instance, address, &long_grace).await?;
        lost.redis.kill()?;
        Ok(Self {
            plain: Nginx::start(plain(PLAIN_LOG)).await?,
            quiet_plain: Nginx::start(plain(NO_LOG)).await?,
            lua: Nginx::start(lua(ACCOUNT_LOG)).await?,
            quiet_lua: Nginx::start(lua(NO_LOG)).await?,
            gate: Server::gate(&store, &instance, address, &[]).await?,
            quiet_gate: Server::gate(&store, &instance, address, &no_log).await?,
            alone,
            _lost: lost,
            unknown: Keys::new("unknown", scale.keys),
            connections: scale.connections,
            store,
            few,
            many,
            revocation,
            revocation_writer,
            service,
            served,
            used_up,
        })
    }

    /// Starts a gate of a directory.
    pub async fn gate_of(&self, directory: &Directory) -> Result<Server> {
        let service = self.service.address();
        Server::gate(&self.store, &directory.instance, service, &[]).await
    }

    /// Variants that take turns.
    pub fn variants(&self, few: &Server, many: &Server) -> Vec<Variant> {
        let load = |address, keys: &Keys, status| Load {
            address,
            connections: self.connections,
            requests: Requests::with_keys(&keys.texts),
            status,
            // A problem's length varies.
            length: (status == 200).then_some(BODY.len()),
            pace: None,
        };
        let nginx = |name, nginx: &Nginx| Variant {
            name,
            load: load(nginx.address(), &self.served, 200),
            process: nginx.id(),
        };
        let gate = |name, gate: &Server, keys, status| Variant {
            name,
            load: load(gate.address(), keys, status),
            process: gate.id(),
        };
        let by_one = |mut variant: Variant| {
            variant.load.connections = 1;
            variant
        };
        let served = &self.served;
        vec![
            nginx(name::NGINX, &self.plain),
            nginx(name::LUA, &self.lua),
            gate(name::GATE, &self.gate, served, 200),
            gate(name::ALONE, &self.alone, served, 200),
            gate(name::UNKNOWN, &self.gate, &self.unknown, 401),
            gate(name::REFUSED, &self.gate, &self.used_up, 429),
            nginx(name::QUIET_NGINX, &self.quiet_plain),
            nginx(name::QUIET_LUA, &self.quiet_lua),
            gate(name::QUIET_GATE, &self.quiet_gate, served, 200),
            gate(name::FEW, few, &self.few.keys, 200),
            gate(name::MANY, many, &self.many.keys, 200),
            by_one(gate(name::ONE, &self.gate, served, 200)),
            by_one(nginx(name::ONE_NGINX, &self.plain)),
        ]
    }
}

/// Records that each account has made its one request of the day, and that the day is tomorrow: as after a clock
/// that was set back, no slot opens before tomorrow's end, whenever this runs.
async fn use_up(store: &Store, instance: &Instance, keys: &Keys) -> Result<()> {
    let time = store.redis.command(&["TIME"]).await?;
    let seconds: u64 = time.lines().nth(2).context("Redis' seconds")?.parse()?;
    let made = format!("{} 1", seconds / (24 * 60 * 60) + 1);
    let mut words = vec!["MSET".to_owned()];
    for entry in keys.entries(USED_UP) {
        words.extend([instance.day(&entry.record.account), made.clone()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    store.redis.command(&words).await?;
    Ok(())
}

/// nginx that does the gate's work in Lua and counts the requests of `keys` as `instance`.
async fn with_lua(store: &Store, instance: &Instance, keys: &Keys) -> Result<Configuration> {
    let script = store.redis.command(&["SCRIPT", "LOAD", LIMITER]).await?;
    let script = script.lines().nth(1).context("the name of the script")?;
    let records = keys.entries(PLAN).map(|entry| {
        let (hash, record) = (entry.hash, entry.record);
        format!("{hash} {} {} {PLAN}\n", record.key_id, record.account)
    });
    Ok(Configuration {
        modules: LUA_MODULES,
        server: include_str!("../../nginx/lua.conf"),
        files: vec![
            ("gate.lua", include_str!("../../nginx/gate.lua").to_owned()),
            ("keys", records.collect()),
        ],
        values: vec![
            ("redis_port", store.redis.port().to_string()),
            ("redis_user", user(instance, "gate")),
            ("redis_password", PASSWORD.to_owned()),
            ("script", script.to_owned()),
            ("instance", instance.to_string()),
            ("minute", LIMITS.0.to_string()),
            ("day", LIMITS.1.to_string()),
            ("identity", IDENTITY.to_owned()),
        ],
    })
}
