//! State of the directory in its `meta`, and state of the server that holds it.

use redis::{InfoDict, pipe};
use serde::Deserialize;

use super::Directory;
use super::claimed_directory::Position;
use crate::failure::StoreError;

/// The layout that this version reads and writes; the scripts name it too.
pub(super) const SCHEMA: u64 = 1;

/// `meta`: one JSON object, so that a person can read it and scripts can decode it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Meta {
    /// Version of the layout; a build refuses to read or write any other than its own.
    pub schema: u64,
    /// Uid of the namespace whose operator writes the directory.
    pub owner: String,
    /// Uid of the WaterDataApi whose keys it holds.
    pub api: String,
    /// Fences writers: a write passes only with this term.
    pub term: u64,
    /// Counts rebuilds. An acknowledgement counts only in this generation.
    pub generation: u64,
    /// Whether a rebuild has written everything.
    pub complete: bool,
    /// Numbers of fields that there must be. Another number means that Redis has evicted some.
    #[serde(flatten)]
    pub counts: Counts,
    /// The last change's number.
    pub seq: u64,
    /// The server's replication id when the directory was rebuilt: a restart or a promotion
    /// changes it, and with it the data may have gone back in time.
    pub replid: String,
}

impl Meta {
    /// Reads the reply of GET. An unreadable `meta` is treated as none: a claim replaces it, and a rebuild follows.
    pub(crate) fn decode(stored: Option<&[u8]>) -> Option<Self> {
        serde_json::from_slice(stored?).ok()
    }

    /// Position of the directory.
    pub fn position(&self) -> Position {
        Position {
            generation: self.generation,
            seq: self.seq,
        }
    }
}

/// Numbers of fields in the directory, of each kind that a rebuild would miss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
pub struct Counts {
    /// Key records, decodable or not.
    #[serde(rename = "count")]
    pub records: u64,
    /// Owners of key records: the operator's, as are the next two.
    pub owners: u64,
    /// Entries of the index.
    pub held: u64,
    /// Tombstones of keys and of owners.
    pub revoked: u64,
}

/// State of the directory and its server at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// `meta` of the directory; `None`: there is no directory, or it cannot be read.
    pub meta: Option<Meta>,
    /// The server's `master_replid`.
    pub replid: String,
    /// Whether the server is a replica, which refuses writes.
    pub is_replica: bool,
    /// Whether a primary that is cut off from its replicas would go on acknowledging, so that a
    /// revocation could be lost with it: it has replicas, and `min-replicas-to-write` or
    /// `min-replicas-max-lag` is not set.
    pub is_unguarded: bool,
}

impl Observation {
    pub(crate) fn read(meta: Option<&[u8]>, info: &InfoDict) -> Option<Self> {
        let role: String = info.get("role")?;
        let replicas: u32 = info.get("connected_slaves")?;
        Some(Self {
            meta: Meta::decode(meta),
            replid: info.get("master_replid")?,
            is_replica: role != "master",
            // Redis shows this number only where both settings are.
            is_unguarded: replicas > 0 && !info.contains_key(&"min_slaves_good_slaves"),
        })
    }

    /// The directory, if it may be used: complete, and on the server on which it was completed.
    pub fn verified(&self) -> Option<&Meta> {
        self.meta
            .as_ref()
            .filter(|meta| meta.complete && meta.replid == self.replid)
    }

    /// Whether the directory must be rebuilt before anybody may trust it.
    pub fn needs_rebuild(&self) -> bool {
        self.verified().is_none()
    }
}

impl Directory {
    /// Reads `meta` and the server's state: cheap enough for once a second.
    pub async fn observe(&self) -> Result<Observation, StoreError> {
        self.observe_to("observe the key directory").await
    }

    /// Observes likewise; `attempt` completes "cannot …" in the error.
    pub(super) async fn observe_to(
        &self,
        attempt: &'static str,
    ) -> Result<Observation, StoreError> {
        let mut commands = pipe();
        commands.cmd("GET").arg(self.instance.meta());
        commands.cmd("INFO").arg("replication");
        let (meta, info): (Option<Vec<u8>>, InfoDict) =
            self.connection.run_all(attempt, &commands).await?;
        Observation::read(meta.as_deref(), &info).ok_or_else(|| StoreError::unexpected(attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Replication\r\nrole:master\r\nconnected_slaves:1\r\nmaster_replid:abc\r\nmaster_replid2:0\r\n";

    fn observed(meta: Option<&[u8]>, info: &str) -> Observation {
        Observation::read(meta, &InfoDict::new(info)).unwrap()
    }

    fn meta(complete: bool, replid: &str) -> Vec<u8> {
        format!(
            r#"{{"schema":1,"owner":"u","api":"a","term":2,"generation":3,"complete":{complete},"count":0,"owners":0,"held":0,"revoked":0,"seq":5,"replid":"{replid}"}}"#
        )
        .into_bytes()
    }

    #[test]
    fn an_empty_complete_directory_is_complete() {
        let seen = observed(Some(&meta(true, "abc")), INFO);
        assert_eq!(seen.verified().map(|meta| meta.counts.records), Some(0));
        assert!(!seen.is_replica);
    }

    #[test]
    fn only_a_primary_with_replicas_can_lack_their_guard() {
        let is_unguarded = |info: &str| observed(None, info).is_unguarded;
        assert!(is_unguarded(INFO));
        assert!(!is_unguarded(&format!(
            "{INFO}min_slaves_good_slaves:1\r\n"
        )));
        let alone = INFO.replace("connected_slaves:1", "connected_slaves:0");
        assert!(!is_unguarded(&alone));
    }

    #[test]
    fn no_meta_an_unreadable_or_unfinished_one_and_another_servers_need_a_rebuild() {
        let (unfinished, others) = (meta(false, "abc"), meta(true, "old"));
        for stored in [None, Some(b"{".to_vec()), Some(unfinished), Some(others)] {
            let seen = observed(stored.as_deref(), INFO);
            assert!(seen.needs_rebuild(), "{seen:?}");
        }
    }
}
