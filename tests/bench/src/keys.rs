//! Keys and plans of a measurement: as many keys as wanted, the same in every run, each with a separate account,
//! so that no account meets a limit by chance.

use std::num::NonZeroU32;
use std::sync::Arc;

use water_domain::{KeyPrefix, Limits, PlainKey, Plan};
use water_keystore::{Contents, Entry, KeyState, Origin, Owner, Record};

/// Plan of all keys that shall be served.
pub const PLAN: &str = "Unmet";
/// Limits of that plan, a minute and a day, which no account meets.
pub const LIMITS: (u32, u32) = (1_000_000, 1_000_000_000);

/// Plan of keys that shall be refused.
pub const USED_UP: &str = "UsedUp";
const ONE_A_DAY: (u32, u32) = (1_000_000, 1);

/// Keys with their accounts.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Texts of the keys, for requests.
    pub texts: Arc<[Box<str>]>,
    series: &'static str,
}

impl Keys {
    /// `count` keys of the accounts `<series>-<number>`; two series have no key in common.
    pub fn new(series: &'static str, count: usize) -> Self {
        let text = |number| key(series, number).expose().into();
        Self {
            texts: (0..count).map(text).collect(),
            series,
        }
    }

    /// Keys as a directory holds them, each with its own ApiKey.
    pub fn entries(&self, plan: &str) -> impl Iterator<Item = Entry> {
        let prefix = KeyPrefix::default();
        let plan: water_domain::PlanName = plan.parse().expect("the name of a plan");
        self.texts.iter().enumerate().map(move |(number, text)| {
            let key = PlainKey::parse(text.as_bytes(), &prefix).expect("a made key is a key");
            let account = format!("{}-{number}", self.series);
            Entry {
                owner: Owner {
                    uid: account.as_str().into(),
                    namespace: "water".into(),
                    name: account.as_str().into(),
                },
                origin: Origin::Generated,
                hash: key.hash(),
                record: Record {
                    key_id: key.key_id(),
                    account: account.parse().expect("letters and digits are an account"),
                    plan: plan.clone(),
                    state: KeyState::Active,
                    not_before: None,
                    expires: None,
                    retires: None,
                    revision: 1,
                },
            }
        })
    }
}

/// Directory with these keys and the plans.
pub fn contents(entries: impl Iterator<Item = Entry>) -> Contents {
    Contents {
        entries: entries.collect(),
        plans: vec![plan(PLAN, LIMITS), plan(USED_UP, ONE_A_DAY)],
    }
}

/// Plan with these limits, a minute and a day.
pub fn plan(name: &str, (minute, day): (u32, u32)) -> Plan {
    let number = |number| NonZeroU32::new(number).expect("a limit is not 0");
    Plan {
        name: name.parse().expect("letters are the name of a plan"),
        limits: Some(Limits {
            requests_per_minute: number(minute),
            requests_per_day: number(day),
        }),
    }
}

fn key(series: &str, number: usize) -> PlainKey<'static> {
    let mut random = [0; 48];
    for (place, byte) in random[..12].iter_mut().zip(series.bytes()) {
        *place = byte;
    }
    random[12..16].copy_from_slice(&(number as u32).to_be_bytes());
    random[40..].copy_from_slice(&(number as u64).to_be_bytes());
    PlainKey::generate(&KeyPrefix::default(), &random)
}
