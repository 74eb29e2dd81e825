//! Everything that runs while the parts are compared, and what takes turns.

use anyhow::Result;

use super::child::Child;
use super::contestant::Contestant::{self, *};
use super::limiter::{Counting, Method};
use super::{accept, directory, exchange};
use crate::load::Slice;
use crate::rounds::Turn;

/// Everything that runs meanwhile.
pub struct Site {
    /// Answers what is exchanged.
    _service: exchange::Service,
    /// Holds the keys of our directory.
    _store: directory::Filled,
    /// In the order of their turns.
    pub entrants: Vec<Entrant>,
}

/// What takes turns.
pub enum Entrant {
    /// Measures itself.
    Child(Contestant, Child),
    /// Answers requests.
    Server(Contestant, accept::Asked),
    /// Counts in Redis.
    Limiter(Counting),
}

impl Site {
    /// Starts everything, with so many keys in each directory.
    pub async fn start(keys: usize) -> Result<Self> {
        let service = exchange::Service::start().await?;
        let store = directory::Filled::start(keys).await?;
        let mut entrants = Vec::new();
        for contestant in Contestant::ALL {
            let with = match contestant {
                ExchangeOurs | ExchangeClient | ExchangeConnection => vec![service.address()],
                DirectoryOurs | DirectoryRecords | DirectoryPacked => store.address(),
                _ => Vec::new(),
            };
            let child = Child::start(&contestant.argument(), &with).await?;
            entrants.push(match contestant.is_server() {
                true => Entrant::Server(contestant, accept::Asked::new(child)?),
                false => Entrant::Child(contestant, child),
            });
        }
        for method in Method::ALL {
            entrants.push(Entrant::Limiter(Counting::start(method).await?));
        }
        Ok(Self {
            _service: service,
            _store: store,
            entrants,
        })
    }

    /// How those that take turns are called.
    pub fn names(&self) -> Vec<&'static str> {
        self.entrants.iter().map(Entrant::name).collect()
    }
}

impl Entrant {
    fn name(&self) -> &'static str {
        match self {
            Self::Child(contestant, _) | Self::Server(contestant, _) => contestant.name(),
            Self::Limiter(counting) => counting.method.name(),
        }
    }

    /// Whose CPU time is counted.
    pub fn process(&self) -> u32 {
        match self {
            Self::Child(_, child) => child.id(),
            Self::Server(_, server) => server.child.id(),
            Self::Limiter(counting) => counting.process(),
        }
    }

    /// Lets it work for one slice.
    pub async fn turn(&mut self, slice: Slice) -> Result<Turn> {
        match self {
            Self::Child(_, child) => child.turn(slice).await,
            Self::Server(_, server) => server.turn(slice).await,
            Self::Limiter(counting) => counting.turn(slice).await,
        }
    }
}
