//! The random changes and faults, and the objects that they are about.

use anyhow::{Context, Result};
use proptest::prelude::*;
use serde_json::{Value, json};
use water_resources::ApiKey;

use crate::world::{api, brought, key};

/// What happens to a key, or to all that the operator stands on. Keys are named by their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Create(u8),
    Suspend(u8, bool),
    /// Sets another plan. One of the plans is removed and given back by other changes.
    Plan(u8, u8),
    /// Sets the expiration, in seconds from now, or removes it.
    Expire(u8, Option<u8>),
    /// Sets the begin, in seconds from now, or removes it.
    Begin(u8, Option<u8>),
    Describe(u8),
    Rotate(u8),
    /// Brings another hash under this key id, which both places with brought keys want.
    Rename(u8, u8),
    /// Sets the rotation period in seconds, or removes it.
    Period(u8, Option<u8>),
    /// Sets the overlap in seconds.
    Overlap(u8, u16),
    /// Sets whether the Secret is retained when the ApiKey is deleted.
    Retain(u8, bool),
    Delete(u8),
    /// A key that was brought along and deleted is brought again …
    Return(u8),
    /// … and its ApiKey is annotated as its status says.
    Reinstate(u8),
    /// The finalizer is stripped, and the ApiKey deleted.
    Strip(u8),
    DeleteSecret(u8),
    EditSecret(u8),
    /// The Secret is somebody else's from here on.
    TakeSecret(u8),
    /// The third plan is taken from the WaterDataApi, or given back.
    OfferPlan(bool),
    /// The leader is killed and starts again.
    Kill,
    /// The leader is stopped for this long, in ms.
    Pause(u16),
    /// The leader is stopped until another one leads …
    Hold,
    /// All operators are stopped …
    Stop,
    /// … and go on, or start again.
    Continue,
    /// Redis loses everything.
    Flush,
    /// Redis writes a dump …
    Dump,
    /// … and comes back with the last one, or empty.
    Restore,
    /// The operator does not reach Redis for this long, in ms.
    CutRedis(u16),
    /// The link between the gate and Redis is cut, or good again.
    CutGate(bool),
    /// Every connection of the operator is cut.
    Disconnect,
    /// Nothing happens for this long, in ms.
    Pass(u16),
    /// So many seconds pass on Redis' clock.
    Age(u8),
    /// It is waited until every restriction is in force, whatever hinders the key.
    Enforce,
}

/// The last one comes and goes.
pub const PLANS: [&str; 3] = ["Enterprise", "Free", "Gold"];
/// Places with keys: in the first half they are generated, in the second brought.
const PLACES: u8 = 4;
/// Seconds of an overlap that no sequence sees the end of by mere chance.
pub const LONG_OVERLAP: u16 = 600;
/// Key ids that brought keys share.
const KEY_IDS: u8 = 2;
/// The shortest period that the definition allows, in seconds.
const SHORTEST_PERIOD: u8 = 60;

/// Any change. Those of keys are the most frequent; a leader that is held costs its Lease's 15 s.
pub fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        180 => frequent_change(),
        1 => Just(Change::Hold),
        2 => Just(Change::Stop),
        12 => Just(Change::Continue),
    ]
}

fn frequent_change() -> impl Strategy<Value = Change> {
    let place = 0..PLACES;
    let (generated, brought) = (0..PLACES / 2, PLACES / 2..PLACES);
    let period = prop::option::of(SHORTEST_PERIOD..SHORTEST_PERIOD + 20);
    let overlap = prop::sample::select(vec![0, 1, 2, LONG_OVERLAP]);
    let key_id = (brought.clone(), 0..KEY_IDS);
    let of_keys = prop_oneof![
        6 => place.clone().prop_map(Change::Create),
        6 => (place.clone(), any::<bool>()).prop_map(|(key, on)| Change::Suspend(key, on)),
        2 => (place.clone(), 0..3_u8).prop_map(|(key, plan)| Change::Plan(key, plan)),
        1 => (place.clone(), prop::option::of(1..4_u8)).prop_map(|(key, end)| Change::Expire(key, end)),
        1 => (place.clone(), prop::option::of(1..4_u8)).prop_map(|(key, begin)| Change::Begin(key, begin)),
        1 => place.clone().prop_map(Change::Describe),
        1 => (generated.clone(), period).prop_map(|(key, period)| Change::Period(key, period)),
        2 => (place.clone(), overlap).prop_map(|(key, overlap)| Change::Overlap(key, overlap)),
        1 => (generated, any::<bool>()).prop_map(|(key, on)| Change::Retain(key, on)),
        2 => brought.clone().prop_map(Change::Return),
        1 => brought.prop_map(Change::Reinstate),
        3 => place.clone().prop_map(Change::Rotate),
        2 => key_id.prop_map(|(key, id)| Change::Rename(key, id)),
        4 => place.clone().prop_map(Change::Delete),
        1 => place.clone().prop_map(Change::Strip),
        1 => place.clone().prop_map(Change::DeleteSecret),
        1 => place.clone().prop_map(Change::EditSecret),
        2 => (0..PLACES / 2).prop_map(Change::TakeSecret),
    ];
    prop_oneof![
        41 => of_keys,
        2 => any::<bool>().prop_map(Change::OfferPlan),
        3 => Just(Change::Kill),
        1 => (1..1500_u16).prop_map(Change::Pause),
        1 => Just(Change::Flush),
        1 => Just(Change::Dump),
        1 => Just(Change::Restore),
        1 => (1..1500_u16).prop_map(Change::CutRedis),
        2 => prop::bool::weighted(0.4).prop_map(Change::CutGate),
        1 => Just(Change::Disconnect),
        5 => (1..300_u16).prop_map(Change::Pass),
        3 => (1..=40_u8).prop_map(Change::Age),
        2 => Just(Change::Enforce),
    ]
}

impl Change {
    /// The key that it changes.
    pub fn place(self) -> Option<u8> {
        match self {
            Self::Create(place)
            | Self::Suspend(place, _)
            | Self::Plan(place, _)
            | Self::Expire(place, _)
            | Self::Begin(place, _)
            | Self::Period(place, _)
            | Self::Overlap(place, _)
            | Self::Retain(place, _)
            | Self::Return(place)
            | Self::Reinstate(place)
            | Self::Describe(place)
            | Self::Rotate(place)
            | Self::Rename(place, _)
            | Self::Delete(place)
            | Self::Strip(place)
            | Self::DeleteSecret(place)
            | Self::EditSecret(place)
            | Self::TakeSecret(place) => Some(place),
            _ => None,
        }
    }
}

/// The ApiKey of a place.
pub fn name(place: u8) -> String {
    format!("key-{place}")
}

/// A WaterDataApi with or without the third plan, that may sweep what sequences strip.
pub fn offering(gold: bool) -> Value {
    let mut api = api();
    api["metadata"]["annotations"] = json!({ "waterdata.dev/sweep-up-to": "1000" });
    if let (true, Some(plans)) = (gold, api["spec"]["plans"].as_array_mut()) {
        plans.push(json!({
            "name": "Gold", "access": "Allowed", "requestsPerMinute": 500, "requestsPerDay": 90000,
        }));
    }
    api
}

/// A key of a place, brought by the hash of this number or generated.
pub fn declared(place: u8, number: u64) -> Value {
    let mut declared = key(&name(place));
    if place >= PLACES / 2 {
        declared = brought(&name(place), 'a');
        declared["spec"]["material"] = material(number);
    }
    declared["spec"]["rotation"] = json!({ "overlapSeconds": LONG_OVERLAP });
    declared
}

fn material(number: u64) -> Value {
    json!({ "hash": { "sha256": digits(number) } })
}

/// No two are alike in their first twelve digits, which name the key.
fn digits(number: u64) -> String {
    format!("{number:012x}{number:052x}")
}

/// The hash of this number, if keys are brought to that place.
pub fn hash(place: u8, number: u64) -> Option<String> {
    (place >= PLACES / 2).then(|| digits(number))
}

/// The patch that rotates a key.
pub fn rotated(key: &ApiKey, number: u64) -> Result<Value> {
    if key.spec.material.hash.is_some() {
        return Ok(under(None, number));
    }
    let revision = key.spec.rotation.revision.unwrap_or(0);
    let revision = revision.checked_add(1).context("a revision")?;
    Ok(json!({ "spec": { "rotation": { "revision": revision } } }))
}

/// The patch that brings another hash to a key under a shared key id, which is left out if the hash before
/// has it: no two hashes of a key have one key id.
pub fn renamed(key: &ApiKey, number: u64, id: u8) -> Value {
    let brought = key.spec.material.hash.as_ref();
    let before = brought.and_then(|brought| brought.key_id.as_ref());
    let id = format!("sequence{id:04}");
    under(Some(id).filter(|id| Some(id) != before), number)
}

fn under(id: Option<String>, number: u64) -> Value {
    let mut material = material(number);
    material["hash"]["keyId"] = id.into();
    json!({ "spec": { "material": material } })
}
