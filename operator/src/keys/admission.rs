//! Rules that find the WaterDataApi which accepts an ApiKey: pure, over what is declared.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::DeserializeGuard;
use kube::{Resource, ResourceExt};
use water_domain::AccountId;
use water_operator_core::key::facts::Admission;
use water_resources::api_key::ApiName;
use water_resources::water_data_api::{AccountBinding, From};
use water_resources::{ApiKey, WaterDataApi};

use super::subject::Subject;
use crate::caches::Installation;
use crate::conditions::Reason;
use crate::config::Scope;

pub type Labels = BTreeMap<String, String>;

/// The prefix of the namespace label that allows ApiKeys to name an account.
const ACCOUNT_LABEL: &str = "account.waterdata.dev/";

/// Reason for which no WaterDataApi accepts a key, with the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Reason in one word.
    pub reason: Reason,
    /// Sentence with the reason and the remedy.
    pub message: String,
}

impl Refusal {
    /// Admission during the refusal: published keys stay, or are withdrawn.
    pub fn admission(&self) -> Admission {
        match self.reason {
            Reason::PlanUnknown | Reason::ApiNotFound | Reason::ApiMismatch => Admission::Hindered,
            _ => Admission::Refused,
        }
    }
}

/// The WaterDataApi of an ApiKey, and whether it admits the key.
pub struct Membership {
    /// WaterDataApi in whose directory the key is or may be declared.
    pub place: Option<ApiName>,
    /// The WaterDataApi, if it exists and can be decoded.
    pub api: Option<WaterDataApi>,
    pub admission: Admission,
    /// Reason for which it does not admit the key.
    pub refusal: Option<Refusal>,
}

/// Finds the WaterDataApi, among these, of an ApiKey whose namespace has these labels.
pub fn membership(
    subject: &Subject,
    labels: &Labels,
    apis: &[Arc<Installation>],
    scope: Scope,
) -> Membership {
    let key = match &subject.key {
        Ok(key) if subject.meta.deletion_timestamp.is_none() => key,
        _ => return former_membership(subject, labels, apis, scope),
    };
    let readable = apis.iter().filter_map(|api| api.0.as_ref().ok());
    let issued = subject.issued_at();
    let (place, api, refusal) = match resolve(key, issued.clone(), labels, readable, scope) {
        Err(refusal) => (None, None, Some(refusal)),
        Ok(place) => match at(&place, apis) {
            Some(DeserializeGuard(Ok(api))) => {
                let refusal = admit(key, labels, api, scope).err();
                (Some(place), Some(api.clone()), refusal)
            }
            other => {
                let mismatch = admits_name(key, &place).err();
                let refusal = mismatch.unwrap_or_else(|| absent(&place, other.is_some()));
                (None, None, Some(refusal))
            }
        },
    };
    Membership {
        // Before the status names it nothing is declared there.
        place: match refusal {
            None => place,
            Some(_) => issued,
        },
        api,
        admission: refusal
            .as_ref()
            .map_or(Admission::Admitted, Refusal::admission),
        refusal,
    }
}

/// Membership of an ApiKey that is being deleted or cannot be decoded: only where its key was issued counts. The
/// namespace of a living one may be refused, too.
fn former_membership(
    subject: &Subject,
    labels: &Labels,
    apis: &[Arc<Installation>],
    scope: Scope,
) -> Membership {
    let place = subject.issued_at();
    let api = place
        .as_ref()
        .and_then(|place| at(place, apis)?.0.as_ref().ok());
    let refusal = match api {
        Some(api) if subject.meta.deletion_timestamp.is_none() => {
            let (namespace, account) = (subject.namespace(), subject.account.as_ref());
            admit_owner(namespace, account, labels, api, scope).err()
        }
        _ => None,
    };
    let api = api.cloned();
    Membership {
        place,
        api,
        // Nothing is admitted any more.
        admission: refusal
            .as_ref()
            .map_or(Admission::Hindered, Refusal::admission),
        refusal,
    }
}

/// Finds the WaterDataApi of that namespace and name, whether it can be decoded or not.
fn at<'a>(place: &ApiName, apis: &'a [Arc<Installation>]) -> Option<&'a Installation> {
    let found = apis.iter().find(|api| {
        let meta = api.meta();
        (meta.namespace.as_ref(), meta.name.as_ref()) == (Some(&place.namespace), Some(&place.name))
    });
    found.map(|api| &**api)
}

/// Whether the labels of an ApiKey's namespace decide anything at this WaterDataApi.
pub fn needs_labels(api: &WaterDataApi) -> bool {
    let rules = &api.spec.api_keys;
    rules.allowed_namespaces.from == From::Selector
        || rules.account_binding == AccountBinding::NamespaceLabel
}

/// The WaterDataApi where a key was `issued`, or that it names, or, when it names none, the only one that admits its
/// namespace.
fn resolve<'a>(
    key: &ApiKey,
    issued: Option<ApiName>,
    labels: &Labels,
    apis: impl IntoIterator<Item = &'a WaterDataApi>,
    scope: Scope,
) -> Result<ApiName, Refusal> {
    let namespace = key.namespace().unwrap_or_default();
    if let Some(issued) = issued {
        return Ok(issued);
    }
    if let Some(named) = &key.spec.api_ref {
        return Ok(named.place(&namespace));
    }
    let mut admitting: Vec<String> = apis
        .into_iter()
        .filter(|api| admits_namespace(api, &namespace, labels, scope).is_ok())
        .map(|api| format!("{}/{}", api.namespace().unwrap_or_default(), api.name_any()))
        .collect();
    admitting.sort();
    match &admitting[..] {
        [only] => {
            let (namespace, name) = only.split_once('/').expect("made with a slash above");
            Ok(ApiName {
                namespace: namespace.into(),
                name: name.into(),
            })
        }
        [] => Err(Refusal {
            reason: Reason::ApiAmbiguous,
            message: format!(
                "spec.apiRef is left out and no WaterDataApi admits ApiKeys of namespace {namespace}: \
                 create one there, or name one that admits it"
            ),
        }),
        several => Err(Refusal {
            reason: Reason::ApiAmbiguous,
            message: format!(
                "spec.apiRef is left out and several WaterDataApis admit ApiKeys of namespace {namespace} ({}): \
                 name one of them",
                several.join(", ")
            ),
        }),
    }
}

/// The WaterDataApi that a key names does not exist, or cannot be decoded.
fn absent(place: &ApiName, exists: bool) -> Refusal {
    let problem = if exists {
        "cannot be read: correct what its events name"
    } else {
        "does not exist: create it, or create another ApiKey that names another"
    };
    Refusal {
        reason: Reason::ApiNotFound,
        message: format!(
            "the WaterDataApi {}/{} {problem}",
            place.namespace, place.name
        ),
    }
}

/// Checks that the spec names no other WaterDataApi than the one where the key was issued.
fn admits_name(key: &ApiKey, issued: &ApiName) -> Result<(), Refusal> {
    let named = key.spec.api_ref.as_ref();
    let Some(named) = named.filter(|named| !named.is_of(issued)) else {
        return Ok(());
    };
    let named = named.place(&key.namespace().unwrap_or_default());
    Err(Refusal {
        reason: Reason::ApiMismatch,
        message: format!(
            "spec.apiRef names the WaterDataApi {}/{}, but the key was issued at {}/{} and stays there: create another \
             ApiKey for the one that it is meant for, and delete this one",
            named.namespace, named.name, issued.namespace, issued.name
        ),
    })
}

/// Checks that a WaterDataApi accepts a key as it is declared.
pub fn admit(
    key: &ApiKey,
    labels: &Labels,
    api: &WaterDataApi,
    scope: Scope,
) -> Result<(), Refusal> {
    let namespace = key.namespace().unwrap_or_default();
    admit_owner(&namespace, Some(&key.spec.account_id), labels, api, scope)?;
    let place = ApiName {
        namespace: api.namespace().unwrap_or_default(),
        name: api.name_any(),
    };
    admits_name(key, &place)?;
    admits_plan(key, api)
}

/// Checks that a WaterDataApi accepts keys of that account, if it is known, in that namespace: all that can be checked
/// of an ApiKey that cannot be decoded.
pub fn admit_owner(
    namespace: &str,
    account: Option<&AccountId>,
    labels: &Labels,
    api: &WaterDataApi,
    scope: Scope,
) -> Result<(), Refusal> {
    admits_namespace(api, namespace, labels, scope)?;
    account.map_or(Ok(()), |account| {
        admits_account(account, namespace, labels, api)
    })
}

fn admits_namespace(
    api: &WaterDataApi,
    namespace: &str,
    labels: &Labels,
    scope: Scope,
) -> Result<(), Refusal> {
    let allowed = &api.spec.api_keys.allowed_namespaces;
    let own = api.namespace().unwrap_or_default();
    let admitted = match allowed.from {
        From::Same => namespace == own,
        // What the operator may not watch it cannot admit; the WaterDataApi says so itself.
        From::All | From::Selector if scope == Scope::Namespaced => namespace == own,
        From::All => true,
        From::Selector => allowed.selector.as_ref().is_some_and(|selector| {
            selector
                .match_labels
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value))
        }),
    };
    if admitted {
        return Ok(());
    }
    Err(Refusal {
        reason: Reason::NamespaceNotAdmitted,
        message: format!(
            "the WaterDataApi {own}/{} does not admit ApiKeys of namespace {namespace}: create the ApiKey in \
             namespace {own}, or widen spec.apiKeys.allowedNamespaces there",
            api.name_any()
        ),
    })
}

/// Checks as far as a WaterDataApi can be read and the labels are known whether it may have admitted ApiKeys of a
/// namespace: it admits them now. Its status, which others may write, does not count.
pub fn may_hold(
    api: &Installation,
    namespace: &str,
    labels: Option<&Labels>,
    scope: Scope,
) -> bool {
    let Ok(decoded) = &api.0 else {
        return true;
    };
    let is_selected = decoded.spec.api_keys.allowed_namespaces.from == From::Selector;
    let is_unknown = labels.is_none() && is_selected && scope == Scope::Cluster;
    let none = Labels::new();
    let admits = admits_namespace(decoded, namespace, labels.unwrap_or(&none), scope).is_ok();
    is_unknown || admits
}

fn admits_account(
    account: &AccountId,
    namespace: &str,
    labels: &Labels,
    api: &WaterDataApi,
) -> Result<(), Refusal> {
    let label = format!("{ACCOUNT_LABEL}{account}");
    if api.spec.api_keys.account_binding == AccountBinding::None || labels.contains_key(&label) {
        return Ok(());
    }
    Err(Refusal {
        reason: Reason::AccountNotBound,
        message: format!(
            "spec.accountId names an account that namespace {namespace} may not name: have a cluster administrator \
             label the namespace with {label}, or name another account"
        ),
    })
}

fn admits_plan(key: &ApiKey, api: &WaterDataApi) -> Result<(), Refusal> {
    let plans = &api.spec.plans;
    if plans.iter().any(|plan| plan.name == key.spec.plan) {
        return Ok(());
    }
    let known: Vec<&str> = plans.iter().map(|plan| plan.name.as_str()).collect();
    Err(Refusal {
        reason: Reason::PlanUnknown,
        message: format!(
            "spec.plan is {}, which the WaterDataApi {} does not have: name one of {}, or add the plan there",
            key.spec.plan,
            api.name_any(),
            known.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests;
