//! Reads and writes the Redis that a WaterDataApi's status names, whether the rest of the object can be decoded or
//! not. Each write is refused if the object has changed since it was read.

use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use water_operator_core::store_names::StoreNames;
use water_resources::WaterDataApi;

use super::InstallationError;
use crate::client::stored;
use crate::conditions::RECORD_MANAGER;

/// Name in a status while no Redis holds the whole directory.
const NO_STORE: &str = "";

/// Metadata of a WaterDataApi, and the Redis that its status names in that version.
#[derive(Clone, Debug)]
pub struct StoreRecord {
    pub meta: ObjectMeta,
    pub names: StoreNames<String>,
}

impl StoreRecord {
    /// Reads a WaterDataApi that can be decoded.
    pub fn from_api(api: &WaterDataApi) -> Self {
        let status = api.status.clone().unwrap_or_default();
        Self {
            meta: api.metadata.clone(),
            names: names(status.directory_store, status.next_directory_store),
        }
    }

    /// Reads one as it is stored.
    pub fn from_object(api: &DynamicObject) -> Self {
        let status = &api.data["status"];
        let text = |field: &Value| field.as_str().map(str::to_owned);
        Self {
            meta: api.metadata.clone(),
            names: names(
                text(&status["directoryStore"]),
                text(&status["nextDirectoryStore"]),
            ),
        }
    }

    /// Writes these names; a conflict if the object has changed since it was read.
    pub async fn write(&mut self, names: StoreNames<String>, client: &Client) -> kube::Result<()> {
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": self.meta.resource_version },
            "status": {
                "directoryStore": names.whole.as_deref().unwrap_or(NO_STORE),
                "nextDirectoryStore": names.next,
            },
        }));
        let (apis, params) = (self.apis(client), PatchParams::apply(RECORD_MANAGER));
        let written = apis.patch_status(self.name(), &params, &patch).await?;
        self.meta.resource_version = written.metadata.resource_version;
        self.names = names;
        Ok(())
    }

    /// Fails if the object has changed since it was read.
    pub async fn is_unchanged(&self, client: &Client) -> Result<(), InstallationError> {
        let live = self.apis(client).get_metadata(self.name()).await?.metadata;
        let is_as_read = live.resource_version == self.meta.resource_version;
        is_as_read.then_some(()).ok_or(InstallationError::Changed)
    }

    /// Puts the names and the version that were read or written last into the WaterDataApi.
    pub fn put_into(self, api: &mut WaterDataApi) {
        api.metadata.resource_version = self.meta.resource_version;
        let status = api.status.get_or_insert_default();
        status.directory_store = Some(self.names.whole.unwrap_or_else(|| NO_STORE.into()));
        status.next_directory_store = self.names.next;
    }

    fn apis(&self, client: &Client) -> Api<DynamicObject> {
        let namespace = self.meta.namespace.as_deref().unwrap_or_default();
        stored::<WaterDataApi>(client, namespace)
    }

    fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }
}

fn names(whole: Option<String>, next: Option<String>) -> StoreNames<String> {
    let is_one = |store: &String| store != NO_STORE;
    StoreNames {
        whole: whole.filter(is_one),
        next: next.filter(is_one),
    }
}
