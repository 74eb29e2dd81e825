//! Content that a rebuild writes: all that a directory shall hold by the cluster.

use std::collections::{HashMap, HashSet};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use kube::Resource;
use water_domain::{KeyHash, Plan, PlanName};
use water_keystore::{Entry, Origin, Owner};
use water_operator_core::key::facts::{Admission, KeyRules, Material};
use water_operator_core::key::{Evidence, published};
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;
use water_resources::{ApiKey, WaterDataApi};

use super::admission::{self, Labels};
use super::claim::{Age, Claim};
use super::plans::plans;
use super::record;
use super::secret::{SecretLookup, StoredSecret};
use super::subject::{Subject, secret_name};
use crate::conditions::{ConditionType, Reason, find, holds};
use crate::config::Scope;
use crate::context::Context;
use crate::directories::{DesiredState, Namespaces};

impl DesiredState for Context {
    fn caught_up(&self) -> BoxFuture<'_, kube::Result<()>> {
        self.caches.caught_up().boxed()
    }

    fn plans(&self, place: &ApiName, stored: Vec<Plan>) -> Vec<Plan> {
        let api = self.decoded_api(place);
        let declared = api.as_ref().map(plans).unwrap_or_default();
        let keys = self.keys.state();
        retained(
            keys.iter().map(|key| key.0.as_ref().ok()),
            place,
            declared,
            stored,
        )
    }

    fn namespaces<'a>(&'a self, place: &'a ApiName) -> BoxFuture<'a, kube::Result<Namespaces>> {
        let api = self.decoded_api(place);
        match api.filter(admission::needs_labels) {
            Some(_) => self.all_namespaces().boxed(),
            None => ready(Ok(Namespaces::new())).boxed(),
        }
    }

    fn is_to_be_carried(&self, place: &ApiName) -> bool {
        let api = self.decoded_api(place);
        let is_carried = |key: &ApiKey| {
            // Its namespace may not be admitted either: then it is left out.
            let is_unsaid = lacks_plan(key, api.as_ref()) || is_conflict(key) || key.is_disputed();
            key.is_issued_at(place) && is_unsaid
        };
        let keys = self.keys.state();
        let mut keys = keys.iter();
        keys.any(|key| key.0.as_ref().map_or(true, is_carried))
    }

    fn entries(&self, place: &ApiName, namespaces: &Namespaces, former: &[Entry]) -> Vec<Entry> {
        let mut candidates = Vec::new();
        self.each_entry(place, namespaces, former, |candidate| {
            candidates.push(candidate);
        });
        ranked(candidates, |entry| entry.hash).collect()
    }
}

impl Context {
    /// The owners of stored records that differ from what the cluster declares, or that it does not
    /// declare, such as those of an ApiKey whose namespace has lost a label.
    pub fn differing(
        &self,
        place: &ApiName,
        namespaces: &Namespaces,
        stored: &[Entry],
    ) -> HashSet<Owner> {
        let mut undeclared: HashMap<_, _> =
            stored.iter().map(|entry| (entry.hash, entry)).collect();
        let held = undeclared.clone();
        let is_held = |entry: &Entry| {
            held.get(&entry.hash)
                .is_some_and(|held| held.record == entry.record && held.owner == entry.owner)
        };
        let mut candidates = Vec::new();
        self.each_entry(place, namespaces, stored, |(claim, age, entry)| {
            // Most are as they are held: keeping only what ranks those lowers the peak with 10 000 keys.
            let differing = (!is_held(&entry)).then_some(entry.owner);
            candidates.push((claim, age, (entry.hash, differing)));
        });
        let mut owners = HashSet::new();
        for (hash, differing) in ranked(candidates, |(hash, _)| *hash) {
            undeclared.remove(&hash);
            owners.extend(differing);
        }
        owners.extend(undeclared.into_values().map(|entry| entry.owner.clone()));
        owners
    }

    /// Passes on each entry that an ApiKey declares for the directory; several may declare one hash.
    fn each_entry(
        &self,
        place: &ApiName,
        namespaces: &Namespaces,
        former: &[Entry],
        mut tell: impl FnMut((Claim, Age, Entry)),
    ) {
        let api = self.decoded_api(place);
        let (api, unlabelled) = (api.as_ref(), Labels::new());
        let mut by_owner: HashMap<&str, Vec<&Entry>> = HashMap::new();
        for entry in former {
            by_owner.entry(&entry.owner.uid).or_default().push(entry);
        }
        for key in self.keys.state() {
            let meta = key.meta();
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let labels = namespaces.get(namespace).unwrap_or(&unlabelled);
            let former = by_owner.remove(meta.uid.as_deref().unwrap_or_default());
            let former = former.unwrap_or_default();
            match &key.0 {
                Ok(watched) => {
                    let newer = self.memory.newer(watched);
                    let key = newer.as_deref().unwrap_or(watched);
                    let admission = admitted(key, labels, api, self.scope);
                    let is_generated = key.spec.material.hash.is_none();
                    let found = is_generated.then(|| self.secrets.known(meta, &secret_name(key)));
                    let in_secret = match &found {
                        Some(SecretLookup::Own(written)) => Some(&**written),
                        _ => None,
                    };
                    let declared = entries(key, place, admission, in_secret, &former);
                    declared.into_iter().for_each(&mut tell);
                }
                // Nobody knows what it declares: what is published of it stays while its namespace is admitted.
                Err(_) if meta.deletion_timestamp.is_none() => {
                    let age = Age::read(&*key);
                    let is_admitted = |entry: &&&Entry| {
                        let account = Some(&entry.record.account);
                        api.is_none_or(|api| {
                            admission::admit_owner(namespace, account, labels, api, self.scope)
                                .is_ok()
                        })
                    };
                    for entry in former.iter().filter(is_admitted) {
                        tell((Claim::InForce, age.clone(), (*entry).clone()));
                    }
                }
                Err(_) => {}
            }
        }
    }
}

/// The strongest candidate for each hash, in the order of their claims.
fn ranked<T>(
    mut candidates: Vec<(Claim, Age, T)>,
    hash: impl Fn(&T) -> KeyHash,
) -> impl Iterator<Item = T> {
    candidates.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    let mut known = HashSet::new();
    let declared = candidates.into_iter().map(|(_, _, declared)| declared);
    declared.filter(move |declared| known.insert(hash(declared)))
}

/// Admission of an ApiKey by the WaterDataApi now; its status may report an earlier one.
fn admitted(key: &ApiKey, labels: &Labels, api: Option<&WaterDataApi>, scope: Scope) -> Admission {
    match api.map(|api| admission::admit(key, labels, api, scope)) {
        None => Admission::Hindered,
        Some(Ok(())) => Admission::Admitted,
        Some(Err(refusal)) => refusal.admission(),
    }
}

/// Published entries of one ApiKey. Nobody knows what one declares whose hash cannot be read.
fn entries(
    key: &ApiKey,
    place: &ApiName,
    admission: Admission,
    in_secret: Option<&StoredSecret>,
    former: &[&Entry],
) -> Vec<(Claim, Age, Entry)> {
    let Some(status) = &key.status else {
        return Vec::new();
    };
    let is_elsewhere = !key.is_issued_at(place);
    let is_deleting = key.meta().deletion_timestamp.is_some();
    if is_elsewhere || is_deleting || admission == Admission::Refused {
        return Vec::new();
    }
    let subject = Subject::whole(key);
    let age = Age::read(key);
    let Some(spec) = subject.declared() else {
        let kept = former.iter().map(|entry| (*entry).clone());
        return kept
            .map(|entry| (Claim::InForce, age.clone(), entry))
            .collect();
    };
    let (announced, ledger) = (subject.announced(), record::ledger(status));
    let rules = former
        .iter()
        .map(|entry| (entry.hash, record::rules(&entry.record)));
    let records = published(&Evidence {
        spec: &spec,
        ledger: &ledger,
        in_secret: in_secret.and_then(|written| Some(written.issued.as_ref()?.hash)),
        retiring: in_secret
            .and_then(|written| written.retiring.as_ref())
            .map(|(before, at)| (before.hash, *at)),
        former: &rules.collect(),
        is_hindered: admission == Admission::Hindered || is_conflict(key),
    });
    // Nobody knows more while Redis or the API server is away.
    let synced = find(&status.conditions, ConditionType::Synced);
    let is_synced = synced.is_some_and(|synced| synced.status != ConditionStatus::False);
    let entry = |(hash, rules): (KeyHash, KeyRules<PlanName>)| {
        let issued = announced.iter().find(|issued| issued.hash == hash)?;
        let claim = if ledger.shown() == Some(hash) && is_synced {
            Claim::InForce
        } else {
            Claim::Announced
        };
        let entry = Entry {
            hash,
            record: issued.record(&key.spec.account_id, &rules),
            owner: record::owner(key.meta()),
            origin: match spec.material {
                Material::Brought(_) => Origin::Brought(key.spec.account_id.clone()),
                Material::Generated => Origin::Generated,
            },
        };
        Some((claim, age.clone(), entry))
    };
    records.into_iter().filter_map(entry).collect()
}

/// Whether the key is held back in a way that leaves it published on its earlier plan, as its status reports: by
/// `Accepted` and `SecretReady`; `Ready` may have been overwritten since, when the object could not be decoded.
fn is_hindered(key: &ApiKey) -> bool {
    let hindrances = [
        Reason::PlanUnknown,
        Reason::ApiNotFound,
        Reason::ApiMismatch,
    ];
    let is_told = |reason| tells(key, ConditionType::Accepted, reason);
    hindrances.into_iter().any(is_told) || is_conflict(key)
}

/// Whether the status reports that its Secret is somebody else's: nothing of it is widened then.
fn is_conflict(key: &ApiKey) -> bool {
    tells(key, ConditionType::SecretReady, Reason::SecretConflict)
}

fn tells(key: &ApiKey, aspect: ConditionType, reason: Reason) -> bool {
    let status = key.status.as_ref();
    let told = status.and_then(|status| find(&status.conditions, aspect));
    told.is_some_and(|told| told.reason == reason.as_str())
}

/// Whether the key stays published on its earlier plan, since its own is not known.
fn lacks_plan(key: &ApiKey, api: Option<&WaterDataApi>) -> bool {
    let has = |api: &WaterDataApi| api.spec.plans.iter().any(|plan| plan.name == key.spec.plan);
    !api.is_some_and(has)
}

/// Whether the status reports what is declared now: until then the directory may hold an earlier plan.
fn is_told(key: &ApiKey) -> bool {
    let status = key.status.as_ref();
    status.is_some_and(|status| {
        status.observed_generation == key.metadata.generation
            && holds(&status.conditions, ConditionType::Synced)
    })
}

/// The declared plans, and the removed ones that a published key may still name, with their last limits. A key that is
/// held back, not reconciled since it was edited, or cannot be decoded may name any. A plan that a spec names stays
/// whatever the status says, which others may write: its limits would be lost.
fn retained<'a>(
    keys: impl Iterator<Item = Option<&'a ApiKey>>,
    place: &ApiName,
    mut declared: Vec<Plan>,
    stored: Vec<Plan>,
) -> Vec<Plan> {
    let is_published = |key: &ApiKey| {
        let status = key.status.as_ref();
        key.is_issued_at(place) && status.is_some_and(|status| status.current.is_some())
    };
    let (mut named, mut is_any_named) = (HashSet::new(), false);
    for key in keys {
        let may_name_any = |key: &ApiKey| is_published(key) && (is_hindered(key) || !is_told(key));
        is_any_named |= key.is_none_or(may_name_any);
        named.extend(key.map(|key| &key.spec.plan));
    }
    let is_declared = |plan: &Plan| declared.iter().any(|declared| declared.name == plan.name);
    let is_kept = |plan: &Plan| !is_declared(plan) && (is_any_named || named.contains(&plan.name));
    let kept: Vec<Plan> = stored.into_iter().filter(is_kept).collect();
    declared.extend(kept);
    declared
}

#[cfg(test)]
mod tests;
