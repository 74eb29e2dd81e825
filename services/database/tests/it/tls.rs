//! Encryption is used when it is asked for, and the server is verified then.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use water_database::{Database, Writer, departements, migrations};
use water_domain::Fault;
use water_harness::certificates::{Authority, Purpose};
use water_harness::{Postgres, scratch_directory, wait_until};

use crate::SOON;

/// A migrated server with a certificate for 127.0.0.1, and the file of its authority.
struct Encrypted {
    postgres: Postgres,
    own: water_harness::Database,
    ca_file: PathBuf,
}

impl Encrypted {
    async fn start() -> Self {
        let postgres = Postgres::start().await.unwrap();
        let own = postgres.create_database().unwrap();
        postgres.sql(own.name(), migrations::ROLES_SQL).unwrap();
        migrations::migrate(&own.url(), None).await.unwrap();
        let folder = scratch_directory("tls").unwrap();
        let authority = Authority::new("test authority").unwrap();
        authority.write(&folder, "ca").unwrap();
        let data: PathBuf = postgres
            .sql("postgres", "SHOW data_directory")
            .unwrap()
            .into();
        let certificate = authority
            .sign("postgres", None, &["127.0.0.1"], Purpose::Server)
            .unwrap();
        certificate.write(&data, "server").unwrap();
        belongs_to_its_folder(&data.join("server.key"));
        belongs_to_its_folder(&data.join("server.crt"));
        postgres
            .sql("postgres", "ALTER SYSTEM SET ssl = on")
            .unwrap();
        postgres.sql("postgres", "SELECT pg_reload_conf()").unwrap();
        let on = async || match postgres.sql("postgres", "SHOW ssl")?.as_str() {
            "on" => Ok(()),
            other => anyhow::bail!("ssl is {other}"),
        };
        wait_until("the server to offer TLS", SOON, on)
            .await
            .unwrap();
        Self {
            postgres,
            own,
            ca_file: folder.join("ca.crt"),
        }
    }

    async fn read(&self, host: &str, query: &str, ca_file: Option<&Path>) -> Result<(), String> {
        let url = self.own.url_as("water_reader").replace("127.0.0.1", host);
        let database = Database::connect(&format!("{url}{query}"), ca_file, 2).unwrap();
        let read = departements::versions(&database).await;
        let encrypted = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                         WHERE usename = 'water_reader'";
        match read {
            Ok(_) => {
                assert_eq!(self.postgres.sql("postgres", encrypted).unwrap(), "t");
                Ok(())
            }
            Err(error) if error.is_transient() => {
                let causes =
                    std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
                        error.source()
                    });
                Err(causes
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(": "))
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Gives the file to its folder's owner: the server refuses a key that others could read.
fn belongs_to_its_folder(file: &Path) {
    let owner = file.parent().unwrap().metadata().unwrap();
    chown(file, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[tokio::test]
async fn a_server_is_believed_for_its_authority_and_name_only() {
    let server = Encrypted::start().await;
    let ca = Some(server.ca_file.as_path());
    for query in ["?sslmode=verify-full", "?sslmode=require", ""] {
        assert_eq!(server.read("127.0.0.1", query, ca).await, Ok(()));
    }
    let unknown = server
        .read("127.0.0.1", "?sslmode=verify-full", None)
        .await
        .unwrap_err();
    assert!(
        unknown.contains("invalid peer certificate: UnknownIssuer"),
        "{unknown}"
    );
    let other_name = server
        .read("localhost", "?sslmode=verify-full", ca)
        .await
        .unwrap_err();
    assert!(other_name.contains("not valid for name"), "{other_name}");
    // A loader may have the certificate as text, from a Secret, which may have none.
    let url = server.own.url_as("water_writer");
    let pem = std::fs::read_to_string(&server.ca_file).unwrap();
    let writer = Writer::connect(&url, Some(water_database::Authority::Pem(&pem))).await;
    let writer = writer.unwrap();
    let encrypted = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE usename = 'water_writer'";
    assert_eq!(server.postgres.sql("postgres", encrypted).unwrap(), "t");
    assert!(writer.has_schema().await.unwrap());
}
