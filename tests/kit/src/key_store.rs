//! A key directory of one test in Redis: an instance that no other test uses, as the operator and the gates
//! see it.

use std::sync::atomic::{AtomicU32, Ordering};

use water_harness::Redis;
use water_keystore::connection::Purpose;
use water_keystore::{
    Connection, ConnectionSettings, Contents, Declaration, Directory, Instance, Origin, Owner,
    Position, Writer,
};

use crate::PatientDirectory;
use crate::patient_directory::patiently;

/// An instance on one Redis, reached as one user.
pub struct KeyStore {
    /// Common prefix of its keys.
    pub instance: Instance,
    url: String,
}

impl KeyStore {
    /// The uid of the namespace of every sample installation.
    pub const NAMESPACE_UID: &str = "0b5e";
    /// The uid of its WaterDataApi.
    pub const API_UID: &str = "a91c";

    /// Makes an instance on the server that tests share.
    pub async fn new() -> Self {
        Self::on(Redis::shared().await.unwrap())
    }

    /// Makes an instance on this server.
    pub fn on(redis: &Redis) -> Self {
        Self::at(redis.url())
    }

    /// Makes an instance, seen as the user of `url`; of a Redis Cluster too.
    pub fn at(url: impl Into<String>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            instance: Instance::new("water", &format!("test-{number}")).unwrap(),
            url: url.into(),
        }
    }

    /// Returns the URL of the user.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connects with the product's settings.
    pub fn connect(&self, purpose: Purpose) -> Connection {
        let settings = ConnectionSettings::new(&self.url, None).unwrap();
        settings.connect(purpose)
    }

    /// Returns the directory, for reading.
    pub fn directory(&self) -> PatientDirectory {
        Directory::new(self.connect(Purpose::Directory), self.instance.clone()).into()
    }

    /// Claims the directory for the sample installation. Late answers may cost terms.
    pub async fn claim(&self) -> Writer {
        let directory = self.directory();
        let claim = async || {
            let claim = directory.claim(Self::NAMESPACE_UID, Self::API_UID, None);
            claim.await
        };
        patiently(claim).await.unwrap().0
    }

    /// Claims the directory and writes all of it.
    pub async fn rebuild(&self, contents: impl Fn() -> Contents) -> Writer {
        let writer = self.claim().await;
        let rebuild = async || writer.rebuild(&contents).await;
        patiently(rebuild).await.unwrap();
        writer
    }

    /// Returns the number of an owner's next declaration, as the directory counts.
    async fn number(&self, owner: &Owner) -> u64 {
        let directory = self.directory();
        let snapshot = directory.owner_snapshot(&owner.uid, &Origin::Generated, &[]);
        snapshot.await.unwrap().number
    }

    /// Declares, with the number that the directory counts, what must be written and not refused.
    pub async fn write(&self, writer: &Writer, declaration: Declaration) -> Position {
        // With its new number, a declaration that was written already changes nothing.
        let declare = async || {
            let number = self.number(&declaration.owner).await;
            let numbered = Declaration {
                number,
                ..declaration.clone()
            };
            writer.declare(&numbered).await
        };
        let declared = patiently(declare).await.unwrap();
        assert!(declared.refused.is_empty(), "{declared:?}");
        declared.applied
    }
}
