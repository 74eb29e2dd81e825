//! Sample keys, their ApiKeys and their declarations.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use water_domain::KeyHash;
use water_domain::key::Shard;
use water_keystore::{Contents, Declaration, Entry, KeyState, Origin, Owner, Record};

/// The hash of sample key `number`; neighbours lie in different shards.
pub fn hash(number: u32) -> KeyHash {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    KeyHash::from_bytes(bytes)
}

pub fn record() -> Record {
    Record {
        key_id: "4fGh7Kq2ZpX1".parse().unwrap(),
        account: "acme".parse().unwrap(),
        plan: "Enterprise".parse().unwrap(),
        state: KeyState::Active,
        not_before: None,
        expires: None,
        retires: None,
        revision: 1,
    }
}

pub fn suspended() -> Record {
    Record {
        state: KeyState::Suspended,
        ..record()
    }
}

/// The ApiKey of a sample key: each key has its own.
pub fn owner_of(hash: KeyHash) -> Owner {
    owner_named(hash.key_id().as_str())
}

pub fn owner_named(name: &str) -> Owner {
    Owner {
        uid: format!("uid-of-{name}").into(),
        namespace: "water".into(),
        name: name.into(),
    }
}

/// The shard of the index that has the entry of this uid.
pub fn held_shard(uid: &str) -> Shard {
    KeyHash::from_bytes(Sha256::digest(uid).into()).shard()
}

/// Declaration of all that `owner` holds from now on, generated.
pub fn declaration(
    owner: Owner,
    records: impl IntoIterator<Item = (KeyHash, Record)>,
) -> Declaration {
    Declaration {
        owner,
        number: 0,
        records: records.into_iter().collect(),
        withdrawn: BTreeSet::new(),
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin: Origin::Generated,
        is_last: false,
    }
}

/// Declaration that the owner of a sample key holds it.
pub fn holding(hash: KeyHash) -> Declaration {
    holding_as(hash, record())
}

pub fn holding_as(hash: KeyHash, record: Record) -> Declaration {
    declaration(owner_of(hash), [(hash, record)])
}

/// Declaration that the owner holds nothing and the key is revoked, whether it was held or not.
pub fn revoking(hash: KeyHash) -> Declaration {
    Declaration {
        revoked: BTreeSet::from([hash]),
        ..declaration(owner_of(hash), [])
    }
}

/// Declaration that the owner holds nothing and the key may come back.
pub fn withdrawing(hash: KeyHash) -> Declaration {
    Declaration {
        withdrawn: BTreeSet::from([hash]),
        ..declaration(owner_of(hash), [])
    }
}

pub fn entry(hash: KeyHash) -> Entry {
    Entry {
        hash,
        record: record(),
        owner: owner_of(hash),
        origin: Origin::Generated,
    }
}

/// A directory's contents of these keys and no plan.
pub fn contents(hashes: impl IntoIterator<Item = KeyHash>) -> Contents {
    Contents {
        entries: hashes.into_iter().map(entry).collect(),
        plans: Vec::new(),
    }
}
