//! A migrated database of the test's own, and the service on it, called as the gate calls it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::Method;
use water_database::writer::{Load, RiskRow, StressRow};
use water_database::{Writer, migrations};
use water_departements::{Config, Service};
use water_domain::{Level, Number, RiskRating, Timestamp, departement};
use water_harness::{Answer, Database, HttpClient, Postgres, wait_until};
use water_http::{Identity, IdentityKey, Signer};
use water_runtime::settings::{Settings, from_settings};
use water_runtime::{Process, program};

/// The key that the service believes, and one that it will believe next.
pub const CURRENT: &str = "11111111111111111111111111111111111111111111111111111111111111aa";
pub const NEXT: &str = "22222222222222222222222222222222222222222222222222222222222222bb";

/// Longer than a refresh takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(10);

/// A database that `water_owner` migrated, without data.
pub async fn migrated(postgres: &Postgres) -> Database {
    let prepare = async |url: &str| {
        let name = url.rsplit('/').next().unwrap();
        postgres.sql(name, migrations::ROLES_SQL)?;
        postgres.sql(name, &format!("ALTER DATABASE {name} OWNER TO water_owner"))?;
        migrations::migrate(&url.replace("postgres@", "water_owner@"), None).await?;
        Ok(())
    };
    postgres
        .database_from_template("water", prepare)
        .await
        .unwrap()
}

/// The service, in this process.
pub struct Running {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    _process: Process,
}

impl Running {
    /// Starts it on a database that may be away.
    pub fn start(postgres_url: &str) -> Self {
        let mut settings = Settings::from_pairs([
            ("WATER_LISTEN_ADDRESS", "127.0.0.1:0"),
            ("WATER_ADMIN_ADDRESS", "127.0.0.1:0"),
            ("WATER_POSTGRES_URL", postgres_url),
            ("WATER_IDENTITY_CURRENT", CURRENT),
            ("WATER_IDENTITY_NEXT", NEXT),
        ]);
        let config: Config = from_settings(&mut settings).unwrap();
        let mut process = Process::start(program!()).unwrap();
        let service = Service::start(&config, 7, &mut process).unwrap();
        let (address, admin) = (service.address().unwrap(), service.admin_address());
        tokio::spawn(service.serve());
        Self {
            address,
            admin,
            _process: process,
        }
    }

    /// Starts it and waits until it is ready.
    pub async fn ready(postgres_url: &str) -> Self {
        let service = Self::start(postgres_url);
        let ready = async || match service.admin("/ready").await {
            answer if answer.status == 200 => Ok(()),
            answer => anyhow::bail!("{answer:?}"),
        };
        wait_until("the service to be ready", SOON, ready)
            .await
            .unwrap();
        service
    }

    /// The service with one load of each dataset, and a writer for further ones.
    pub async fn with_data() -> (Self, Writer) {
        let database = migrated(Postgres::shared().await.unwrap()).await;
        let mut writer = writer(&database).await;
        let codes = ["30", "2B", "34", "01", "971", "2A", "29"];
        let stress = codes.map(|code| stress(code, 3.0));
        writer
            .replace_stress(&stress, day(2), &load())
            .await
            .unwrap();
        let risks = codes.map(|code| risk(code, 62.5));
        writer.replace_risk(&risks, day(1), &load()).await.unwrap();
        (Self::ready(&database.url_as("water_reader")).await, writer)
    }

    /// `GET target`, vouched for by the gate.
    pub async fn get(&self, target: &str) -> Answer {
        self.request("GET", target, &[]).await
    }

    /// A request that the gate vouches for.
    pub async fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let identity = Signature::default().value(method, target);
        let headers = [headers, &[("X-Water-Identity", identity.as_str())]].concat();
        self.raw(method, target, &headers).await
    }

    /// A request with exactly these headers.
    pub async fn raw(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let mut client = HttpClient::connect(self.address).await.unwrap();
        client.request(method, target, headers).await.unwrap()
    }

    /// A question to the admin port.
    pub async fn admin(&self, path: &str) -> Answer {
        let mut client = HttpClient::connect(self.admin).await.unwrap();
        client.request("GET", path, &[]).await.unwrap()
    }
}

/// What the gate signs with, and until when.
pub struct Signature {
    pub key: &'static str,
    /// Milliseconds from this moment.
    pub expires_in: i64,
}

impl Default for Signature {
    fn default() -> Self {
        Self {
            key: CURRENT,
            expires_in: 30_000,
        }
    }
}

impl Signature {
    /// The header's value for one request.
    pub fn value(&self, method: &str, target: &str) -> String {
        let identity = Identity {
            account: "acme".parse().unwrap(),
            key: "abcdefghijkl".parse().unwrap(),
            plan: "Enterprise".parse().unwrap(),
        };
        let signer = Signer::new(&self.key.parse::<IdentityKey>().unwrap());
        let expires = Timestamp::from_millis(now() + self.expires_in).unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let value = signer.sign(&identity, expires, &method, target);
        value.to_str().unwrap().to_owned()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the service compares with this clock"
)]
fn now() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    since_epoch.as_millis().try_into().unwrap()
}

pub async fn writer(database: &Database) -> Writer {
    Writer::connect(&database.url_as("water_writer"), None)
        .await
        .unwrap()
}

/// A load by a test.
pub fn load() -> Load {
    Load {
        sha256: [7; 32],
        source: "a test".to_owned(),
        synthetic: true,
        loaded_by: "nobody".to_owned(),
        allow_missing: true,
        force: false,
        max_changed: 50,
        dry_run: false,
    }
}

/// Midnight of a day of January 2026, counted from 1.
pub fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + (day - 1) * 86_400_000).unwrap()
}

pub fn stress(code: &str, index: f64) -> StressRow {
    StressRow {
        departement: departement::parse(code).unwrap(),
        stress_index: Number::try_from(index).unwrap(),
        level: Some(Level::AlerteRenforcee),
    }
}

pub fn risk(code: &str, overall: f64) -> RiskRow {
    RiskRow {
        departement: departement::parse(code).unwrap(),
        flood: Number::try_from(12.25).unwrap(),
        drought: Number::try_from(100.0).unwrap(),
        overall: Number::try_from(overall).unwrap(),
        rating: Some(RiskRating::D),
        updated_at: None,
    }
}
