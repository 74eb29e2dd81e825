//! Keys are made in two languages, Rust here and TypeScript in the portal's pages: both are held to
//! the same golden vectors, which a third implementation made (Python's `hashlib` and `zlib`).

use serde::Deserialize;

use super::{KeyPrefix, KeyRandomness, PlainKey};

/// Random bytes and the key that they make.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Vector {
    what: String,
    prefix: String,
    /// The 48 bytes in hexadecimal.
    random: String,
    text: String,
    key_id: String,
    sha256: String,
}

#[test]
fn keys_agree_with_the_golden_vectors() {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../data/key-vectors.json")).unwrap();
    assert!(vectors.len() >= 16);
    for vector in vectors {
        let prefix: KeyPrefix = vector.prefix.parse().unwrap();
        let mut random: KeyRandomness = [0; 48];
        hex::decode_to_slice(&vector.random, &mut random).unwrap();
        let key = PlainKey::generate(&prefix, &random);
        assert_eq!(key.expose(), vector.text, "{}", vector.what);
        assert_eq!(key.key_id().as_str(), vector.key_id, "{}", vector.what);
        assert_eq!(key.hash().to_string(), vector.sha256, "{}", vector.what);
        let read = PlainKey::parse(vector.text.as_bytes(), &prefix).unwrap();
        assert_eq!(read.hash(), key.hash(), "{}", vector.what);
    }
}
