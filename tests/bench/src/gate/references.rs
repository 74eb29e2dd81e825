//! What the gate is compared with, and the service behind all of them.

use anyhow::{Context, Result};
use water_keystore::Instance;

use super::workload::{BODY, LIMITS, PLAN};
use crate::keys::Keys;
use crate::nginx::{Configuration, Nginx};
use crate::server::IDENTITY;
use crate::store::Store;

/// Gathered, as the gate gathers its lines.
const PLAIN_LOG: &str = "access.log access buffer=64k flush=1s";
const ACCOUNT_LOG: &str = "access.log account buffer=64k flush=1s";
const NO_LOG: &str = "off";

const LUA_MODULES: &str = "\
load_module /usr/lib/nginx/modules/ndk_http_module.so;\n\
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;";

/// The gate's own script: what is compared is how it is asked, not what it does.
const LIMITER: &str = include_str!("../../../../services/keystore/src/limiter.lua");

/// The service, and the references before it.
#[derive(Debug)]
pub struct References {
    pub service: Nginx,
    pub plain: Nginx,
    pub quiet_plain: Nginx,
    pub lua: Nginx,
    pub quiet_lua: Nginx,
}

impl References {
    /// Starts all of them. Those that count in Redis count the requests of `keys` as `instance`.
    pub async fn start(store: &Store, instance: &Instance, keys: &Keys) -> Result<Self> {
        let service = Configuration::new(include_str!("../../nginx/service.conf"));
        let service = Nginx::start(service.set("body", BODY)).await?;
        let plain = |log| {
            Configuration::new(include_str!("../../nginx/plain.conf"))
                .set("service", service.address())
                .set("access_log", log)
        };
        let lua = with_lua(store, instance, keys)
            .await?
            .set("service", service.address());
        Ok(Self {
            plain: Nginx::start(plain(PLAIN_LOG)).await?,
            quiet_plain: Nginx::start(plain(NO_LOG)).await?,
            lua: Nginx::start(lua.clone().set("access_log", ACCOUNT_LOG)).await?,
            quiet_lua: Nginx::start(lua.set("access_log", NO_LOG)).await?,
            service,
        })
    }
}

async fn with_lua(store: &Store, instance: &Instance, keys: &Keys) -> Result<Configuration> {
    let script = store.redis.command(&["SCRIPT", "LOAD", LIMITER]).await?;
    let script = script
        .lines()
        .nth(1)
        .context("Redis names a loaded script")?;
    let records = keys.known().map(|known| {
        let (hash, key, account) = (known.hash, known.key, known.account);
        format!("{hash} {key} {account} {PLAN}\n")
    });
    let (user, password) = store.gate_user(instance);
    Ok(Configuration::new(include_str!("../../nginx/lua.conf"))
        .modules(LUA_MODULES)
        .file("gate.lua", include_str!("../../nginx/gate.lua"))
        .file("keys", records.collect::<String>())
        .set("redis_port", store.redis.port())
        .set("redis_user", user)
        .set("redis_password", password)
        .set("script", script)
        .set("instance", instance)
        .set("minute", LIMITS.0)
        .set("day", LIMITS.1)
        .set("identity", IDENTITY))
}
