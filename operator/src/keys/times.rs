//! The times of a key in force, by Redis' clock.

use std::time::Duration;

use water_domain::{KeyHash, Timestamp};
use water_resources::api_key::RetiringKey;

use super::gather::Gathered;
use super::record::Issued;

/// When something is to be done about a key that is in force, though nothing happens.
pub fn next_boundary(gathered: &Gathered, hash: &KeyHash) -> Option<Duration> {
    let spec = gathered.subject.spec()?;
    let retires = previous(gathered, hash).map(|previous| previous.retire_time);
    let rotates = gathered
        .issued
        .get(hash)
        .and_then(|issued| next_rotation(gathered, issued));
    let boundaries = [spec.not_before, spec.expiration_time, retires, rotates];
    let left = boundaries.into_iter().filter_map(|at| left(gathered, at?));
    left.filter(|left| !left.is_zero()).min()
}

/// How long it is until then by Redis' clock.
pub fn left(gathered: &Gathered, at: Timestamp) -> Option<Duration> {
    let left = at.as_millis() - gathered.reading.as_ref()?.now.as_millis();
    Some(Duration::from_millis(left.try_into().unwrap_or(0)))
}

/// When a key will be replaced by itself; never one that has ended by then.
pub fn next_rotation(gathered: &Gathered, issued: &Issued) -> Option<Timestamp> {
    let spec = gathered.seen.spec.as_ref()?;
    let at = issued.time.plus(spec.rotation.period?);
    let ends = spec.rules.expires;
    ends.is_none_or(|ends| at < ends).then_some(at)
}

/// The key that works beside the one in force.
pub fn previous(gathered: &Gathered, hash: &KeyHash) -> Option<RetiringKey> {
    let mut records = gathered.reading.as_ref()?.records.iter();
    records.find_map(|(other, record)| {
        let retires = record.as_ref()?.retires?;
        let issued = gathered.issued.get(other).filter(|_| other != hash)?;
        Some(issued.retiring(retires))
    })
}
