//! The times of a key in force, by Redis' clock.

use std::time::Duration;

use water_domain::{KeyHash, Timestamp};

use super::gather::PassInput;
use super::record::Issuance;

/// Time until something has to be done about a key that is in force, though nothing happens.
pub fn next_boundary(gathered: &PassInput, hash: &KeyHash) -> Option<Duration> {
    let spec = gathered.subject.spec()?;
    let previous = gathered.facts.previous(hash);
    let retires = previous.map(|(_, retires)| retires);
    let rotates = gathered
        .issued
        .get(hash)
        .and_then(|issued| next_rotation(gathered, issued));
    let boundaries = [spec.not_before, spec.expiration_time, retires, rotates];
    let left = boundaries.into_iter().filter_map(|at| left(gathered, at?));
    left.filter(|left| !left.is_zero()).min()
}

/// Time until then by Redis' clock.
pub fn left(gathered: &PassInput, at: Timestamp) -> Option<Duration> {
    let left = at.as_millis() - gathered.reading.as_ref()?.now.as_millis();
    Some(Duration::from_millis(left.try_into().unwrap_or(0)))
}

/// Time at which a key will be replaced by itself; never one that has ended by then.
pub fn next_rotation(gathered: &PassInput, issued: &Issuance) -> Option<Timestamp> {
    let spec = gathered.facts.spec.as_ref()?;
    let at = issued.time.plus(spec.rotation.period?);
    let ends = spec.rules.expires;
    ends.is_none_or(|ends| at < ends).then_some(at)
}
