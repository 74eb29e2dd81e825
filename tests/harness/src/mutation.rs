//! Mutations of byte strings: further inputs when everything that was thought of holds.
//!
//! Blind to what the tested code does with an input, so that the corpus has to bring the forms that matter.
//! The same corpus and seed make the same inputs.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Bytes at which parsers decide.
const DECISIVE: &[u8] = b"\r\n\0\t :;,%/?&=+.\"\\0159aAfFxX\x0b\x7f\x80\xc3\xff";
/// More would leave nothing of what an input is about.
const MOST_MUTATIONS: u32 = 4;
/// Inputs do not grow beyond this.
const LONGEST: usize = 40 * 1024;

/// An endless series of inputs.
#[derive(Debug)]
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    random: StdRng,
}

impl Mutator {
    /// Begins the series of this seed. The corpus must not be empty.
    pub fn new(corpus: Vec<Vec<u8>>, seed: u64) -> Self {
        assert!(!corpus.is_empty(), "there is nothing to mutate");
        Self {
            corpus,
            random: StdRng::seed_from_u64(seed),
        }
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.random.random_range(0..=input.len());
        let range = self.range(input.len());
        match self.random.random_range(0..9) {
            0 => flip(input.get_mut(at), self.random.random_range(0..8)),
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.decisive();
                }
            }
            2 => input.insert(at, self.decisive()),
            3 => drop(input.drain(range)),
            4 => {
                let again = input[range].to_vec();
                insert(input, at, &again);
            }
            5 => {
                let other = self.one_of_the_corpus();
                let part = self.range(other.len());
                insert(input, at, &other[part]);
            }
            6 => input[range]
                .iter_mut()
                .filter(|byte| byte.is_ascii_alphabetic())
                .for_each(|byte| *byte ^= 0x20),
            7 => input.truncate(at),
            _ => input.extend(self.one_of_the_corpus()),
        }
    }

    fn one_of_the_corpus(&mut self) -> Vec<u8> {
        let index = self.random.random_range(0..self.corpus.len());
        self.corpus[index].clone()
    }

    fn decisive(&mut self) -> u8 {
        DECISIVE[self.random.random_range(0..DECISIVE.len())]
    }

    /// Returns a stretch of something of this length, short more often than long.
    fn range(&mut self, length: usize) -> Range<usize> {
        let begin = self.random.random_range(0..=length);
        let most = (length - begin).min(1 << self.random.random_range(0..10));
        begin..begin + self.random.random_range(0..=most)
    }
}

/// Series without an end: an input of the corpus with one to four mutations.
impl Iterator for Mutator {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.one_of_the_corpus();
        for _ in 0..self.random.random_range(1..=MOST_MUTATIONS) {
            self.mutate(&mut input);
        }
        input.truncate(LONGEST);
        Some(input)
    }
}

fn flip(byte: Option<&mut u8>, bit: u32) {
    if let Some(byte) = byte {
        *byte ^= 1 << bit;
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let corpus = vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), Vec::new()];
        Mutator::new(corpus, seed).take(1000).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_another_makes_others() {
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn most_inputs_differ() {
        let different: HashSet<_> = inputs(1).into_iter().collect();
        assert!(different.len() > 500, "{}", different.len());
    }
}
