//! Texts that are keys and texts that are not.

use proptest::prelude::*;

use super::*;

fn generated() -> PlainKey<'static> {
    PlainKey::generate(&KeyPrefix::default(), &[7; 48])
}

fn parse(text: &str) -> Result<PlainKey<'_>, MalformedKey> {
    PlainKey::parse(text.as_bytes(), &KeyPrefix::default())
}

#[test]
fn a_generated_key_is_one_word_of_66_characters() {
    let key = generated();
    assert_eq!(key.expose().len(), 66);
    assert!(key.expose().starts_with("wdk_"));
    assert_eq!(key.key_id().as_str(), &key.expose()[4..16]);
}

#[test]
fn a_generated_key_is_read_back_as_itself() {
    let key = generated();
    let read = parse(key.expose()).unwrap();
    assert_eq!((read.hash(), read.key_id()), (key.hash(), key.key_id()));
}

#[test]
fn every_wrong_character_of_a_generated_key_is_noticed_before_hashing() {
    let key = generated().expose().to_owned();
    for position in 17..key.len() {
        let mut wrong = key.clone().into_bytes();
        wrong[position] = if wrong[position] == b'x' { b'y' } else { b'x' };
        assert_eq!(
            PlainKey::parse(&wrong, &KeyPrefix::default()),
            Err(MalformedKey)
        );
    }
    assert_eq!(parse(&key.to_lowercase()), Err(MalformedKey));
}

#[test]
fn a_brought_key_may_be_any_token_of_32_to_128_characters() {
    for good in [
        "a".repeat(32),
        "A-._~+/9".repeat(16),
        format!("{}==", "b".repeat(40)),
    ] {
        assert_eq!(
            parse(&good).unwrap().key_id(),
            parse(&good).unwrap().hash().key_id()
        );
    }
    for bad in [
        "a".repeat(31),
        "a".repeat(129),
        "=".repeat(40),
        "a b".repeat(20),
        "é".repeat(20),
    ] {
        assert_eq!(parse(&bad), Err(MalformedKey), "{bad}");
    }
}

#[test]
fn a_key_does_not_show_itself() {
    assert_eq!(format!("{:?}", generated()), "PlainKey");
}

#[test]
fn a_hash_is_64_lower_case_digits_and_names_its_shard() {
    let text = "abc".to_owned() + &"0".repeat(61);
    let hash: KeyHash = text.parse().unwrap();
    assert_eq!(
        (hash.to_string(), hash.shard().to_string()),
        (text.clone(), "abc".to_owned())
    );
    for bad in [text.to_uppercase(), text[1..].to_owned(), "g".repeat(64)] {
        assert_eq!(bad.parse::<KeyHash>(), Err(InvalidKeyHash));
    }
}

proptest! {
    #[test]
    fn any_randomness_makes_a_key_that_parses(low in any::<[u8; 24]>(), high in any::<[u8; 24]>()) {
        let random: KeyRandomness = std::array::from_fn(|i| if i < 24 { low[i] } else { high[i - 24] });
        let key = PlainKey::generate(&KeyPrefix::default(), &random);
        prop_assert_eq!(parse(key.expose()).unwrap().hash(), key.hash());
    }
}
