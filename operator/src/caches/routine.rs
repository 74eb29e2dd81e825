//! Queue of settled ApiKeys over which another pass follows. It is emptied at a pace that leaves room for those that
//! change: behind the passes over 10 000 others, a new key would wait for many seconds.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::Notify;

use super::Key;
use crate::lock::lock;

/// ApiKeys that wait, each once, in the order in which they came: one that waits keeps its place when it is asked for
/// again. Those of a WaterDataApi that has changed come before those that a list has shown, since some may have lost
/// their admission.
#[derive(Default)]
pub struct Routine {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    concerned: VecDeque<Arc<ObjectRef<Key>>>,
    others: VecDeque<Arc<ObjectRef<Key>>>,
    /// ApiKeys in the queues, which thereby hold no object.
    all: HashSet<Arc<ObjectRef<Key>>>,
}

impl Routine {
    /// Adds ApiKeys that do not wait yet; `is_concerned`: their WaterDataApi has changed.
    pub fn add(&self, keys: impl IntoIterator<Item = ObjectRef<Key>>, is_concerned: bool) {
        let mut waiting = lock(&self.waiting);
        for key in keys.into_iter().map(Arc::new) {
            if waiting.all.insert(Arc::clone(&key)) {
                let queue = if is_concerned {
                    &mut waiting.concerned
                } else {
                    &mut waiting.others
                };
                queue.push_back(key);
            }
        }
        self.added.notify_one();
    }

    /// Waits for the next ApiKey.
    pub async fn next(&self) -> ObjectRef<Key> {
        loop {
            let next = lock(&self.waiting).pop();
            if let Some(key) = next {
                return key;
            }
            self.added.notified().await;
        }
    }
}

impl Waiting {
    fn pop(&mut self) -> Option<ObjectRef<Key>> {
        let next = self.concerned.pop_front();
        let next = next.or_else(|| self.others.pop_front())?;
        self.all.remove(&next);
        Some(Arc::unwrap_or_clone(next))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn key(name: &str) -> ObjectRef<Key> {
        ObjectRef::new(name).within("team")
    }

    fn next(routine: &Routine) -> Option<String> {
        routine.next().now_or_never().map(|key| key.name)
    }

    #[test]
    fn an_apikey_that_waits_keeps_its_place_however_often_it_is_added() {
        let routine = Routine::default();
        assert_eq!(next(&routine), None);
        routine.add([key("first"), key("second")], false);
        assert_eq!(next(&routine).as_deref(), Some("first"));
        routine.add([key("first"), key("second")], false);
        assert_eq!(next(&routine).as_deref(), Some("second"));
        assert_eq!(next(&routine).as_deref(), Some("first"));
        assert_eq!(next(&routine), None);
    }

    #[test]
    fn those_of_a_changed_water_data_api_come_first() {
        let routine = Routine::default();
        routine.add([key("listed"), key("both")], false);
        routine.add([key("concerned"), key("both")], true);
        let order = [(); 3].map(|()| next(&routine));
        let order: Vec<_> = order.iter().flatten().collect();
        assert_eq!(order, ["concerned", "listed", "both"]);
    }

    #[tokio::test]
    async fn whoever_waits_is_woken() {
        let routine = Routine::default();
        let added = async { routine.add([key("first")], false) };
        let (next, ()) = tokio::join!(routine.next(), added);
        assert_eq!(next.name, "first");
    }
}
