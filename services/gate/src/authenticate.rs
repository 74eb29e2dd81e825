//! Authentication: from the presented key to its record in the key directory, checked on Redis' time.

use water_domain::KeyPrefix;
use water_http::Problem;
use water_keystore::{Record, Validity, View};

use crate::credentials::{CredentialsError, presented_key};
use crate::grace::Grace;
use water_http::RequestHead;

/// Reason that a key can be neither accepted nor refused. It is never the client's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum DirectoryAway {
    #[error("there is no complete copy of the key directory yet")]
    NoCopy,
    #[error("the key is unknown, and may be newer than this copy of the key directory")]
    Outdated,
    #[error("Redis has been away for longer than this gate may serve from memory")]
    GraceIsOver,
}

/// Returns the record of the presented key, if the key is in force, and the state of the directory in which it was
/// found. Costs no round trip.
///
/// A malformed key is refused whatever the directory's state; an unknown key only while the copy is known to be
/// current; a known one is valid until the grace is over.
pub fn authenticate(
    request: &RequestHead,
    prefix: &KeyPrefix,
    grace: &Grace,
) -> Result<(Record, View), Problem> {
    let key = presented_key(&request.headers, prefix).map_err(|error| match error {
        CredentialsError::Missing => Problem::missing_credentials(),
        CredentialsError::OtherScheme(scheme) => Problem::other_scheme(scheme),
        CredentialsError::Repeated => Problem::invalid_request(),
        CredentialsError::Malformed => Problem::invalid_key(),
    })?;
    let directory = &grace.directory;
    let view = directory
        .view()
        .ok_or_else(|| away(DirectoryAway::NoCopy))?;
    let Some(record) = view.record(&key.hash()) else {
        return Err(if directory.status().current {
            Problem::invalid_key()
        } else {
            away(DirectoryAway::Outdated)
        });
    };
    if grace.is_over() {
        return Err(away(DirectoryAway::GraceIsOver));
    }
    match record.validity(view.now()) {
        Validity::Active => Ok((record, view)),
        Validity::Retired => Err(Problem::invalid_key()),
        Validity::Expired => Err(Problem::key_expired()),
        Validity::Suspended => Err(Problem::key_suspended()),
        Validity::NotYetValid => Err(Problem::key_not_yet_valid()),
    }
}

fn away(cause: DirectoryAway) -> Problem {
    Problem::dependency_unavailable().caused_by(cause)
}
