//! The random changes and faults, and the objects that they are about.

use proptest::prelude::*;
use serde_json::{Value, json};
use water_kit::operator::world::{api, brought, key};

/// A change of a key, or of all that the operator depends on. Keys are named by their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Key(u8, Edit),
    /// The third plan is taken from the WaterDataApi, or given back.
    OfferPlan(bool),
    /// The leader is killed and starts again.
    Kill,
    /// The leader is stopped for this long, in ms.
    Pause(u16),
    /// The leader is stopped until another one leads …
    Hold,
    /// Every operator is stopped …
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
    /// Pause without any change, in ms.
    Pass(u16),
    /// Jump of Redis' clock, in seconds.
    Age(u8),
    /// Waits until every restriction is in force, whatever blocks the key.
    Enforce,
}

/// A change of one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    Create,
    Suspend(bool),
    /// Sets another plan. One of the plans is removed and given back by other changes.
    Plan(u8),
    /// Sets the expiration, in seconds from now, or removes it.
    Expire(Option<u8>),
    /// Sets the begin, in seconds from now, or removes it.
    Begin(Option<u8>),
    Describe,
    Rotate,
    /// Provides another hash under this key id, which both places with provided keys want.
    Rename(u8),
    /// Sets the rotation period in seconds, or removes it.
    Period(Option<u16>),
    /// Sets the overlap in seconds.
    Overlap(u16),
    /// Sets whether the Secret is retained when the ApiKey is deleted.
    Retain(bool),
    Delete,
    /// A key that was provided and deleted is provided again …
    Return,
    /// … and its ApiKey is annotated as its status says.
    Reinstate,
    /// The finalizer is stripped, and the ApiKey deleted.
    Strip,
    DeleteSecret,
    ChangeSecret,
    /// The Secret is somebody else's from here on.
    TakeSecret,
}

/// The last one comes and goes.
pub const PLANS: [&str; 3] = ["Enterprise", "Free", "Gold"];
/// Places with keys: in the first half they are generated, in the second provided.
const PLACES: u8 = 4;
/// Seconds of an overlap that no sequence sees the end of by mere chance.
pub const LONG_OVERLAP: u16 = 600;
/// Key ids that provided keys share.
const KEY_IDS: u8 = 2;
/// The shortest period that the definition allows, in seconds.
const SHORTEST_PERIOD: u16 = 3600;

/// Strategy of any change. Changes of keys are the most frequent; a leader that is held costs its Lease's 15 s.
pub fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        180 => frequent_change(),
        1 => Just(Change::Hold),
        2 => Just(Change::Stop),
        12 => Just(Change::Continue),
    ]
}

fn frequent_change() -> impl Strategy<Value = Change> {
    let (all, generated, provided) = (0..PLACES, 0..PLACES / 2, PLACES / 2..PLACES);
    let at = |places: std::ops::Range<u8>, edit: BoxedStrategy<Edit>| {
        (places, edit).prop_map(|(place, edit)| Change::Key(place, edit))
    };
    let of_any = prop_oneof![
        6 => Just(Edit::Create),
        6 => any::<bool>().prop_map(Edit::Suspend),
        2 => (0..3_u8).prop_map(Edit::Plan),
        1 => prop::option::of(1..4_u8).prop_map(Edit::Expire),
        1 => prop::option::of(1..4_u8).prop_map(Edit::Begin),
        1 => Just(Edit::Describe),
        2 => prop::sample::select(vec![0, 1, 2, LONG_OVERLAP]).prop_map(Edit::Overlap),
        3 => Just(Edit::Rotate),
        4 => Just(Edit::Delete),
        1 => Just(Edit::Strip),
        1 => Just(Edit::DeleteSecret),
        1 => Just(Edit::ChangeSecret),
    ];
    let period = prop::option::of(SHORTEST_PERIOD..SHORTEST_PERIOD + 20);
    let of_generated = prop_oneof![
        1 => period.prop_map(Edit::Period),
        1 => any::<bool>().prop_map(Edit::Retain),
        2 => Just(Edit::TakeSecret),
    ];
    let of_provided = prop_oneof![
        2 => Just(Edit::Return),
        1 => Just(Edit::Reinstate),
        2 => (0..KEY_IDS).prop_map(Edit::Rename),
    ];
    prop_oneof![
        31 => at(all, of_any.boxed()),
        4 => at(generated, of_generated.boxed()),
        5 => at(provided, of_provided.boxed()),
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

/// A key of a place, provided by the hash of this number or generated.
pub fn declared(place: u8, number: u64) -> Value {
    let mut declared = key(&name(place));
    if place >= PLACES / 2 {
        declared = brought(&name(place), 'a');
        declared["spec"]["material"] = material(number);
    }
    declared["spec"]["rotation"] = json!({ "overlapSeconds": LONG_OVERLAP });
    declared
}

/// A provided hash of this number.
pub fn material(number: u64) -> Value {
    json!({ "hash": { "sha256": digits(number) } })
}

/// Digits of a hash. No two are alike in their first twelve digits, which name the key.
fn digits(number: u64) -> String {
    format!("{number:012x}{number:052x}")
}

/// The hash of this number, if keys are provided at that place.
pub fn hash(place: u8, number: u64) -> Option<String> {
    (place >= PLACES / 2).then(|| digits(number))
}
