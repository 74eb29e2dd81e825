//! Whether the Secret of an ApiKey holds the key that its annotations name. The text is read only at a
//! version that neither this leader nor the status knows; its hash is then remembered.

use water_domain::KeyHash;
use water_resources::ApiKey;

use super::membership::Membership;
use super::memory::MadeKey;
use super::secret::{self, Found, Written};
use super::seen::{Admission, Content, Secret};
use super::subject::Subject;
use crate::context::Context;

/// The Secret, and whether its text is that of the key that its annotations name.
pub struct Inspected {
    /// The Secret.
    pub found: Found,
    is_genuine: bool,
}

/// Looks for the Secret in the watch's memory and, before a key is made or after somebody else wrote
/// first, at the API server. An ApiKey that is not prepared gets its finalizer whatever its Secret is.
pub async fn inspect(
    subject: &Subject,
    membership: &Membership,
    made: Option<&MadeKey>,
    is_prepared: bool,
    context: &Context,
) -> kube::Result<Inspected> {
    let Some(name) = subject.secret_name() else {
        return Ok(Inspected::of(Found::Missing, false));
    };
    let known = context.secrets.known(&subject.meta, &name);
    if membership.admission != Admission::Admitted || !is_prepared {
        return Ok(Inspected::of(known, true));
    }
    let is_to_be_asked = made.map_or(known == Found::Missing, |made| made.is_overtaken);
    let found = if is_to_be_asked {
        context.secrets.ask(&subject.meta, &name).await?
    } else {
        known
    };
    let text = match &found {
        Found::Missing | Found::Foreign => return Ok(Inspected::of(found, false)),
        Found::Own(written) => known_text(subject, written, context),
        Found::Orphan(_) => None,
    };
    let (found, text) = match text {
        Some(text) => (found, text),
        None => {
            let (found, text) = context.secrets.read(&subject.meta, &name).await?;
            if let Found::Own(written) = &found {
                context
                    .secrets
                    .keep(subject.uid(), written.meta.clone(), text);
            }
            (found, text)
        }
    };
    if matches!(found, Found::Orphan(_)) && !is_living(subject, context).await? {
        return Ok(Inspected::of(Found::Foreign, false));
    }
    let named = found.written().and_then(|written| written.issued.as_ref());
    let is_genuine = named.is_some_and(|issued| Some(issued.hash) == text);
    Ok(Inspected { found, is_genuine })
}

/// The hash of the text at this version, if it was written or read before.
fn known_text(subject: &Subject, written: &Written, context: &Context) -> Option<Option<KeyHash>> {
    let version = written.meta.resource_version.as_ref();
    let is_told = version.is_some() && subject.status.secret_resource_version.as_ref() == version;
    let told = || is_told.then(|| written.issued.as_ref().map(|issued| issued.hash));
    context
        .secrets
        .text_at(subject.uid(), version)
        .or_else(told)
}

/// Whether the ApiKey of that name still is this one; then the ApiKey that owned the Secret is gone.
async fn is_living(subject: &Subject, context: &Context) -> kube::Result<bool> {
    let keys = context.api::<ApiKey>(subject.namespace());
    let living = keys.get_metadata_opt(subject.name()).await?;
    Ok(living.is_some_and(|living| living.metadata.uid == subject.meta.uid))
}

impl Inspected {
    fn of(found: Found, is_genuine: bool) -> Self {
        Self { found, is_genuine }
    }

    /// To decide by.
    pub fn seen(&self, subject: &Subject, membership: &Membership) -> Secret<KeyHash> {
        let content = |written: &Written| {
            let declared = subject.key.as_ref().ok().zip(membership.api.as_ref());
            let is_as_declared =
                declared.is_some_and(|(key, api)| secret::is_as_declared(key, written, api));
            Some(Content {
                hash: written.issued.as_ref()?.hash,
                retiring: written
                    .retiring
                    .as_ref()
                    .map(|(before, at)| (before.hash, *at)),
                is_as_declared,
            })
        };
        match &self.found {
            Found::Missing => Secret::Missing,
            Found::Own(written) if self.is_genuine => {
                content(written).map_or(Secret::Edited, Secret::Own)
            }
            Found::Own(_) => Secret::Edited,
            Found::Orphan(written) if self.is_genuine => {
                content(written).map_or(Secret::Foreign, Secret::Orphan)
            }
            Found::Orphan(_) | Found::Foreign => Secret::Foreign,
        }
    }
}
