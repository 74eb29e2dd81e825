//! Record of one key for a gate, and its packed form in Redis and in every gate's memory.
//!
//! Layout, version 1: version byte; flags byte (bit 0 suspended, 1 not before, 2 expires, 3 retires); revision; the
//! times that the flags announce, in ms; then key id, account and plan, each behind its length byte. Numbers are
//! LEB128. A typical record is 45 bytes: below 64, Redis keeps a shard as one compact list.

use std::str::FromStr;

use water_domain::{AccountId, KeyId, PlanName, Timestamp};

/// Key: its names, its plan and the times at which it is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The key's public name, for logs and last use.
    pub key_id: KeyId,
    /// Account whose history the key reads, and whose limits it charges.
    pub account: AccountId,
    /// The plan that admits it; its limits are in the directory's plans.
    pub plan: PlanName,
    /// State that the owner declared: suspended or not.
    pub state: KeyState,
    /// Time before which it is refused; valid at it.
    pub not_before: Option<Timestamp>,
    /// Time from which it is refused.
    pub expires: Option<Timestamp>,
    /// End of a rotation's overlap: from this moment on the key is answered like an unknown one.
    pub retires: Option<Timestamp>,
    /// Number of the key among its owner's, counted by rotations.
    pub revision: u32,
}

/// State that the owner declared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyState {
    /// The key is in force, if its times allow.
    Active,
    /// The key is refused until resumed.
    Suspended,
}

/// State of a key at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Validity {
    /// Valid key.
    Active,
    /// Retired key, whose successor has taken over: answered like an unknown key.
    Retired,
    /// Key whose expiration time has come.
    Expired,
    /// Key that its owner has suspended.
    Suspended,
    /// Key whose time has not come.
    NotYetValid,
}

const VERSION: u8 = 1;
const SUSPENDED: u8 = 1;
const NOT_BEFORE: u8 = 1 << 1;
const EXPIRES: u8 = 1 << 2;
const RETIRES: u8 = 1 << 3;

impl Record {
    /// State of the key at `now`, which is Redis' time.
    pub fn validity(&self, now: Timestamp) -> Validity {
        let reached = |moment: Option<Timestamp>| moment.is_some_and(|moment| now >= moment);
        if reached(self.retires) {
            Validity::Retired
        } else if reached(self.expires) {
            Validity::Expired
        } else if self.state == KeyState::Suspended {
            Validity::Suspended
        } else if self.not_before.is_some_and(|moment| now < moment) {
            Validity::NotYetValid
        } else {
            Validity::Active
        }
    }

    /// The packed form.
    pub fn encode(&self) -> Vec<u8> {
        let times = [
            (NOT_BEFORE, self.not_before),
            (EXPIRES, self.expires),
            (RETIRES, self.retires),
        ];
        let mut flags = 0;
        if self.state == KeyState::Suspended {
            flags |= SUSPENDED;
        }
        for (flag, time) in times {
            if time.is_some() {
                flags |= flag;
            }
        }
        let mut packed = Vec::with_capacity(64);
        packed.extend([VERSION, flags]);
        push_number(&mut packed, self.revision.into());
        for time in times.into_iter().filter_map(|(_, time)| time) {
            push_number(&mut packed, zigzag(time.as_millis()));
        }
        push_text(&mut packed, self.key_id.as_str());
        push_text(&mut packed, self.account.as_str());
        push_text(&mut packed, self.plan.as_str());
        packed
    }

    /// Reads the packed form. `None`: it is damaged, or of a version that this build does not know.
    pub fn decode(packed: &[u8]) -> Option<Self> {
        let mut rest = packed;
        let record = read(&mut rest)?;
        rest.is_empty().then_some(record)
    }
}

fn read(rest: &mut &[u8]) -> Option<Record> {
    if take_byte(rest)? != VERSION {
        return None;
    }
    let flags = take_byte(rest)?;
    if flags & !(SUSPENDED | NOT_BEFORE | EXPIRES | RETIRES) != 0 {
        return None;
    }
    let revision = u32::try_from(take_number(rest)?).ok()?;
    let mut time = |flag: u8| -> Option<Option<Timestamp>> {
        if flags & flag == 0 {
            return Some(None);
        }
        Timestamp::from_millis(unzigzag(take_number(rest)?)).map(Some)
    };
    let (not_before, expires, retires) = (time(NOT_BEFORE)?, time(EXPIRES)?, time(RETIRES)?);
    Some(Record {
        key_id: take_text(rest)?,
        account: take_text(rest)?,
        plan: take_text(rest)?,
        state: if flags & SUSPENDED == 0 {
            KeyState::Active
        } else {
            KeyState::Suspended
        },
        not_before,
        expires,
        retires,
        revision,
    })
}

/// Zigzag form of a number: moments before 1970 are negative, and become as short as those after it.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn push_number(packed: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

fn push_text(packed: &mut Vec<u8>, text: &str) {
    let length =
        u8::try_from(text.len()).expect("key ids, accounts and plans have at most 63 bytes");
    packed.push(length);
    packed.extend(text.as_bytes());
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    Some(*first)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    // Nine groups of seven bits hold every moment and revision; a tenth would overflow.
    for shift in (0..63).step_by(7) {
        let byte = take_byte(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take_text<T: FromStr>(rest: &mut &[u8]) -> Option<T> {
    let length = take_byte(rest)?.into();
    let (text, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
