//! The children of one WaterDataApi at the API server: read, applied, pruned.
//!
//! A child that is as it should be is not written: a restart of the operator writes nothing. What is ours is compared
//! and repaired; what others added stays.

use std::collections::HashMap;

use kube::api::{
    DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, TypeMeta,
};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tracing::info;
use water_resources::WaterDataApi;

use super::drift::is_as;
use super::fingerprint::short_hash;
use super::manifest::{ChildKind, Desired, Manifest};
use super::render::MANAGED_BY;
use crate::conditions::WORKLOAD_MANAGER;
use crate::context::Context;

/// Annotation with a hash of what was applied last: fields that are no longer wanted show in nothing else.
const APPLIED: &str = "waterdata.dev/applied";

/// Reason for which a child could not be made as it should be.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error("{attempt} {kind:?} {name}: {source}")]
    Kube {
        attempt: &'static str,
        kind: ChildKind,
        name: String,
        source: kube::Error,
    },
    #[error(
        "the {kind:?} {name} exists and is not this WaterDataApi's: delete it, or give the WaterDataApi another name"
    )]
    Foreign { kind: ChildKind, name: String },
    /// The child is that of an earlier WaterDataApi of the same name, and is deleted without us.
    #[error(
        "the {kind:?} {name} is that of an earlier WaterDataApi of this name, and is deleted with it"
    )]
    Leftover { kind: ChildKind, name: String },
    #[error("reading the {kind:?} {name}")]
    Shape {
        kind: ChildKind,
        name: String,
        source: kube::core::dynamic::ParseDynamicObjectError,
    },
}

/// The children as they were when this pass began.
pub struct Children {
    client: Client,
    namespace: String,
    api: String,
    owner: String,
    live: HashMap<(ChildKind, String), DynamicObject>,
}

impl Children {
    /// Reads all children of the WaterDataApi with that uid.
    pub async fn observe(api: &WaterDataApi, context: &Context) -> Result<Self, ChildError> {
        let mut children = Self {
            client: context.client.clone(),
            namespace: api.namespace().unwrap_or_default(),
            api: api.name_any(),
            owner: api.uid().unwrap_or_default(),
            live: HashMap::new(),
        };
        let selector = format!(
            "{}={},app.kubernetes.io/instance={}",
            MANAGED_BY.0, MANAGED_BY.1, children.api
        );
        let params = ListParams::default().labels(&selector);
        for kind in ChildKind::ALL {
            let listed = children.api(kind).list(&params).await;
            for child in listed.map_err(failed("listing", kind, "all"))? {
                if owned_by(&children.owner, &child.metadata) {
                    let child = typed(child, kind);
                    children.live.insert((kind, child.name_any()), child);
                }
            }
        }
        Ok(children)
    }

    pub fn get<K>(&self, kind: ChildKind, name: &str) -> Result<Option<K>, ChildError>
    where
        K: Resource + DeserializeOwned,
    {
        let found = self.live.get(&(kind, name.to_owned())).cloned();
        let parsed = found.map(DynamicObject::try_parse).transpose();
        parsed.map_err(|source| ChildError::Shape {
            kind,
            name: name.into(),
            source,
        })
    }

    /// Whether a child was made as it should be, whatever others have changed since.
    pub fn is_made(&self, manifest: &Manifest) -> bool {
        let live = self.live.get(&(manifest.kind, manifest.name.clone()));
        let applied = live.and_then(|live| live.annotations().get(APPLIED));
        applied.is_some_and(|applied| *applied == hash(manifest))
    }

    /// Brings a child back to what it was made, if that is still what it should be: drift is repaired
    /// without waiting for the steps before.
    pub async fn repair(&mut self, manifest: &Manifest) -> Result<(), ChildError> {
        if self.is_made(manifest) {
            self.apply(manifest).await?;
        }
        Ok(())
    }

    /// Brings a child to what it should be, if it is not.
    pub async fn apply(&mut self, manifest: &Manifest) -> Result<(), ChildError> {
        let Manifest { kind, name, body } = manifest;
        let mut wanted = body.clone();
        wanted["metadata"]["annotations"][APPLIED] = hash(manifest).into();
        let api = self.api(*kind);
        match self.live.get(&(*kind, name.clone())) {
            // A Job's pods cannot be changed; another Job has another name.
            Some(_) if *kind == ChildKind::Job => return Ok(()),
            Some(live) if is_as(&wanted, &serde_json::to_value(live).unwrap_or_default()) => {
                return Ok(());
            }
            Some(_) => {}
            None => {
                let there =
                    api.get_metadata_opt(name)
                        .await
                        .map_err(failed("looking for", *kind, name))?;
                if let Some(there) = there
                    && !owned_by(&self.owner, &there.metadata)
                {
                    let (kind, name) = (*kind, name.clone());
                    return Err(if was_owned_by(&self.api, &there.metadata) {
                        ChildError::Leftover { kind, name }
                    } else {
                        ChildError::Foreign { kind, name }
                    });
                }
            }
        }
        // Nothing is applied that the API server does not know.
        let params = PatchParams::apply(WORKLOAD_MANAGER)
            .force()
            .validation_strict();
        let applied = api
            .patch(name, &params, &Patch::Apply(&wanted))
            .await
            .map_err(failed("applying", *kind, name))?;
        info!(kind = ?kind, name, "applied");
        self.live.insert((*kind, name.clone()), applied);
        Ok(())
    }

    pub async fn prune(&mut self, desired: &Desired) -> Result<(), ChildError> {
        let wanted: Vec<(ChildKind, String)> = desired
            .all()
            .map(|manifest| (manifest.kind, manifest.name.clone()))
            .collect();
        let live = self.live.keys().cloned();
        let unwanted: Vec<_> = live.filter(|child| !wanted.contains(child)).collect();
        for (kind, name) in unwanted {
            match self
                .api(kind)
                .delete(&name, &DeleteParams::background())
                .await
            {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                deleted => {
                    deleted.map_err(failed("deleting", kind, &name))?;
                    info!(kind = ?kind, name, "pruned");
                }
            }
            self.live.remove(&(kind, name));
        }
        Ok(())
    }

    fn api(&self, kind: ChildKind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind.resource())
    }
}

/// Adds the kind, which items of a list lack.
fn typed(mut child: DynamicObject, kind: ChildKind) -> DynamicObject {
    let resource = kind.resource();
    child.types = Some(TypeMeta {
        api_version: resource.api_version,
        kind: resource.kind,
    });
    child
}

fn hash(manifest: &Manifest) -> String {
    short_hash(&[&manifest.body.to_string()])
}

fn owned_by(owner: &str, metadata: &ObjectMeta) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|reference| reference.uid == owner)
}

/// Whether a WaterDataApi of that name owns the object; with another uid it is gone.
fn was_owned_by(name: &str, metadata: &ObjectMeta) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind == WaterDataApi::kind(&()) && owner.name == name)
}

fn failed<'a>(
    attempt: &'static str,
    kind: ChildKind,
    name: &'a str,
) -> impl FnOnce(kube::Error) -> ChildError + 'a {
    move |source| ChildError::Kube {
        attempt,
        kind,
        name: name.into(),
        source,
    }
}
