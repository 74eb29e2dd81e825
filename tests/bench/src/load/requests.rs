//! The requests of a load: to a gate the same head, as an ingress passes it on, with another key and
//! another client's address each time; to a service whole requests in turn.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clients of whose failures the gate keeps an account, none of which fails 20 times a second at
/// the rates that a few cores reach.
const CLIENTS: u64 = 8_192;

/// Coprime to every number of keys that is used: neighbours in time are far apart in the directory,
/// and every key has its turn.
const STRIDE: u64 = 7_368_787;

/// What is sent, one after the other and then from the beginning.
#[derive(Debug)]
pub struct Requests {
    form: Form,
    next: AtomicU64,
}

#[derive(Debug)]
enum Form {
    /// A target with each key.
    Keys(&'static str, Arc<[Box<str>]>),
    /// Whole requests.
    Whole(Vec<String>),
}

impl Requests {
    /// GET of `target` with each of `keys` in turn.
    pub fn new(target: &'static str, keys: Arc<[Box<str>]>) -> Self {
        Self::of(Form::Keys(target, keys))
    }

    /// These whole requests in turn.
    pub fn whole(texts: Vec<String>) -> Self {
        Self::of(Form::Whole(texts))
    }

    fn of(form: Form) -> Self {
        Self {
            form,
            next: AtomicU64::new(0),
        }
    }

    /// Writes the next request in place of what `request` holds.
    pub(super) fn next(&self, request: &mut Vec<u8>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        request.clear();
        let (target, keys) = match &self.form {
            Form::Keys(target, keys) => (target, keys),
            Form::Whole(texts) => {
                let text = &texts[(number % texts.len() as u64) as usize];
                request.extend_from_slice(text.as_bytes());
                return;
            }
        };
        let key = &keys[(number.wrapping_mul(STRIDE) % keys.len() as u64) as usize];
        let client = number % CLIENTS;
        write!(
            request,
            "GET {} HTTP/1.1\r\n\
             Host: water.example\r\n\
             User-Agent: water-bench\r\n\
             Accept: application/json\r\n\
             Authorization: Bearer {key}\r\n\
             X-Forwarded-For: 10.0.{}.{}\r\n\
             \r\n",
            target,
            client / 256,
            client % 256
        )
        .expect("memory takes every byte");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_has_its_turn() {
        for count in [1, 100, 1_000] {
            let keys = (0..count).map(|number| number.to_string().into());
            let requests = Requests::new("/", keys.collect());
            let mut sent = HashSet::new();
            for _ in 0..count {
                let mut request = Vec::new();
                requests.next(&mut request);
                let text = String::from_utf8(request).unwrap();
                let key = text.lines().find_map(|line| line.split_once("Bearer "));
                sent.insert(key.unwrap().1.to_owned());
            }
            assert_eq!(sent.len(), count);
        }
    }
}
