//! Search for the directory that holds keys of an ApiKey, where the one that its status names does not.
//!
//! Whoever may write `apikeys/status` may write another WaterDataApi's name there, and so may a tool that restores a
//! status: neither the name nor the absence of keys behind it proves that nothing accepts a key.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use water_keystore::Origin;
use water_resources::api_key::ApiName;

use super::{Directories, DirectoryError, OpenDirectory};

/// Result of a search in the open directories of one operator.
#[derive(Debug)]
pub enum SearchResult {
    /// The directory of this WaterDataApi holds keys of the ApiKey, or has held some.
    Holder(ApiName),
    /// None that was read holds anything of it.
    NotFound {
        /// WaterDataApis whose directories were read. One that opens during the search is not among them.
        without: BTreeSet<ApiName>,
        /// WaterDataApis whose directories could not be read.
        silent: BTreeMap<ApiName, DirectoryError>,
    },
}

impl Directories {
    /// Asks every open directory but that of `besides` for the ApiKey with this uid, all at once.
    pub async fn search(&self, uid: &str, besides: Option<&ApiName>) -> SearchResult {
        let mut others = self.all();
        others.retain(|open| Some(&open.api) != besides);
        others.sort_by(|one, other| one.api.cmp(&other.api));
        let answers = join_all(others.iter().map(|open| self.holds(open, uid))).await;
        let (mut without, mut silent) = (BTreeSet::new(), BTreeMap::new());
        for (open, answer) in others.iter().zip(answers) {
            match answer {
                Ok(true) => return SearchResult::Holder(open.api.clone()),
                Ok(false) => {
                    without.insert(open.api.clone());
                }
                Err(error) => {
                    silent.insert(open.api.clone(), error);
                }
            }
        }
        SearchResult::NotFound { without, silent }
    }

    /// Checks for keys of the ApiKey with this uid that a directory holds, or has held. The absence in one that is not
    /// whole, or has gone back, proves nothing.
    pub(super) async fn holds(
        &self,
        open: &OpenDirectory,
        uid: &str,
    ) -> Result<bool, DirectoryError> {
        let asked = async {
            open.answers()?;
            let reached = open.known().reached;
            let snapshot = open.directory.owner_snapshot(uid, &Origin::Generated, &[]);
            let snapshot = snapshot.await?;
            let is_known = snapshot.is_known();
            let is_whole = snapshot.position.is_some_and(|at| at >= reached) && !open.is_behind();
            if !is_known && !is_whole {
                return Err(DirectoryError::NotWhole);
            }
            Ok(is_known)
        };
        self.counted(asked.await)
    }
}
