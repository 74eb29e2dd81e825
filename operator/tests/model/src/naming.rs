//! A pass over the WaterDataApi, in its part that concerns Redis: it opens the directory where the Secret says, once
//! the status allows that, and names the Redis there when the directory is complete.

use water_operator_core::store_names::StoreNames;

use crate::leader::{Claim, Naming};
use crate::mistake::Mistake;
use crate::system::System;

/// Decision of a pass of leader `number`; `None`: there is nothing to do.
pub fn decided(system: &System, number: usize, mistake: Option<Mistake>) -> Option<Naming> {
    let own = &system.leaders[number];
    if !own.leading || own.naming.is_some() || !system.exists {
        return None;
    }
    let known = own.cache.map_or(system.names, |cache| cache.names);
    let store = system.named;
    // A leader remembers its own moves.
    let is_remembered = mistake == Some(Mistake::RecordedAfterMove) && own.open.is_some();
    let is_complete = own.claim == Claim::Open || mistake == Some(Mistake::NamedBeforeCompletion);
    let is_kept = mistake == Some(Mistake::AnnouncedUnderAnOldClaim) && own.open == Some(store);
    let (names, opens) = match before(known, store, mistake) {
        Some(names) => (Some(names), Some((store, true)).filter(|_| !is_kept)),
        None if own.open == Some(store) => {
            let names = after(known, store, mistake);
            (Some(names.filter(|_| is_complete)?), None)
        }
        None => {
            let is_behind = known.is_behind(&store) || is_remembered;
            (None, Some((store, is_behind)))
        }
    };
    Some(Naming {
        names,
        opens,
        is_as_read: known == system.names,
    })
}

fn before(known: StoreNames<u8>, store: u8, mistake: Option<Mistake>) -> Option<StoreNames<u8>> {
    match mistake {
        Some(Mistake::RecordedAfterMove) => None,
        Some(Mistake::AnnouncedForNoRedis) => known.whole.and_then(|_| known.before(&store)),
        _ => known.before(&store),
    }
}

fn after(known: StoreNames<u8>, store: u8, mistake: Option<Mistake>) -> Option<StoreNames<u8>> {
    let named = StoreNames {
        whole: Some(store),
        next: None,
    };
    match mistake {
        Some(Mistake::RecordedAfterMove) => (known != named).then_some(named),
        Some(Mistake::AnnouncedForNoRedis) => known.whole.is_none().then_some(named),
        _ => known.after(&store),
    }
}

/// The system after the write, or after the API server has said that the status is as it was read. `from`: the
/// leader, unless nobody waits for the answer any more.
pub fn done(
    system: &System,
    naming: Naming,
    from: Option<usize>,
    mistake: Option<Mistake>,
) -> System {
    let mut next = system.clone();
    let is_blind = match naming.names {
        Some(_) => mistake == Some(Mistake::NamedWhateverVersion),
        None => mistake == Some(Mistake::OldStatusBelieved),
    };
    if !naming.is_as_read && !is_blind {
        return next;
    }
    if let Some(names) = naming.names {
        next.change_names(names);
    }
    if let (Some(number), Some((store, is_behind))) = (from, naming.opens) {
        next.leaders[number].open(store, is_behind);
    }
    next
}
