//! A migrated database of the test's own, and the service on it, called as the gate calls it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::Method;
use water_database::writer::{Batch, History, HistoryRow, Load};
use water_database::{Writer, migrations};
use water_domain::{Number, Timestamp};
use water_harness::{Answer, Database, HttpClient, Postgres, wait_until};
use water_history::{Config, Service};
use water_http::{Identity, IdentityKey, Signer};
use water_runtime::settings::{Settings, from_settings};
use water_runtime::{Process, program};

/// The key that the service believes.
pub const CURRENT: &str = "11111111111111111111111111111111111111111111111111111111111111aa";

/// Longer than anything here takes on a busy machine.
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

    /// Waits until it is ready.
    pub async fn ready(self) -> Self {
        let ready = async || match self.admin("/ready").await {
            answer if answer.status == 200 => Ok(()),
            answer => anyhow::bail!("{answer:?}"),
        };
        wait_until("the service to be ready", SOON, ready)
            .await
            .unwrap();
        self
    }

    /// The service on an empty database of a shared server, and a writer for it.
    pub async fn empty() -> (Self, Writer) {
        let database = migrated(Postgres::shared().await.unwrap()).await;
        let service = Self::start(&database.url_as("water_reader")).ready().await;
        (service, writer(&database).await)
    }

    /// `GET target` for the account `acme`.
    pub async fn get(&self, target: &str) -> Answer {
        self.request("GET", target, &[]).await
    }

    /// `GET target` for any account.
    pub async fn get_as(&self, account: &str, target: &str) -> Answer {
        let identity = Signature {
            account,
            ..Signature::default()
        }
        .value("GET", target);
        self.raw("GET", target, &[("X-Water-Identity", identity.as_str())])
            .await
    }

    /// A request for `acme` that the gate vouches for.
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

/// Whom the gate vouches for, with what, and until when.
pub struct Signature<'a> {
    pub account: &'a str,
    pub key: &'a str,
    /// Milliseconds from this moment.
    pub expires_in: i64,
}

impl Default for Signature<'_> {
    fn default() -> Self {
        Self {
            account: "acme",
            key: CURRENT,
            expires_in: 30_000,
        }
    }
}

impl Signature<'_> {
    /// The header's value for one request.
    pub fn value(&self, method: &str, target: &str) -> String {
        let identity = Identity {
            account: self.account.parse().unwrap(),
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

/// A row of a history: what matters to its place, and a score.
#[derive(Clone, Debug)]
pub struct Row {
    pub account: &'static str,
    pub id: String,
    /// Milliseconds after the beginning of 2026.
    pub at: i64,
    pub score: f64,
    pub company: &'static str,
}

/// A row of `acme`.
pub fn row(id: impl ToString, at: i64) -> Row {
    Row {
        account: "acme",
        id: id.to_string(),
        at,
        score: 61.5,
        company: "Eaux de l'Hérault",
    }
}

/// `acme`'s rows `r0000`, `r0001` … a second apart; the last is the newest.
pub fn rows(count: i64) -> Vec<Row> {
    (0..count)
        .map(|number| row(format!("r{number:04}"), number * 1000))
        .collect()
}

/// Loads rows into a history.
pub async fn load(writer: &mut Writer, history: History, rows: &[Row]) {
    let mut batch = Batch::default();
    for (line, row) in (2..).zip(rows) {
        batch.push(&HistoryRow {
            line,
            account_id: row.account,
            id: &row.id,
            company_name: row.company,
            sector_code: "36.00Z",
            dept_code: "34",
            score: Number::try_from(row.score).unwrap(),
            rating: "B+",
            created_at: Timestamp::from_millis(1_767_225_600_000 + row.at).unwrap(),
        });
    }
    let mut staging = writer.stage(history).await.unwrap();
    staging.push(batch).await.unwrap();
    let load = Load {
        sha256: [7; 32],
        source: "a test".to_owned(),
        synthetic: true,
        loaded_by: "nobody".to_owned(),
        allow_missing: false,
        force: false,
        max_changed: 50,
        dry_run: false,
    };
    let as_of = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
    staging.finish(as_of, &load).await.unwrap();
}
