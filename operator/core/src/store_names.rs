//! Rules by which a WaterDataApi's status names the Redis of its key directory: pure, and the exhaustive model runs
//! them.
//!
//! A Redis that the Secret names again looks as whole as when it was left, and lacks what was declared in another
//! one meanwhile. So nothing is claimed in a Redis before the status names or announces it. A status that announces
//! one names none. Each announcement is a change of the object, so that its version refuses every write of the
//! status that a lost leader has decided on before.

/// Redis as a status names them. `S` distinguishes one from another.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StoreNames<S> {
    /// Redis that holds the whole directory: no other one has been written since.
    pub whole: Option<S>,
    /// Redis in which the directory is completed next, while none holds it whole.
    pub next: Option<S>,
}

impl<S: Clone + PartialEq> StoreNames<S> {
    /// Returns the status that a claim in `store` requires; `None`: it is so already.
    pub fn before(&self, store: &S) -> Option<Self> {
        let announcing = Self {
            whole: None,
            next: Some(store.clone()),
        };
        (self.is_behind(store) && *self != announcing).then_some(announcing)
    }

    /// Whether a directory in `store` may have missed changes, though it looks whole.
    pub fn is_behind(&self, store: &S) -> bool {
        self.whole.as_ref() != Some(store)
    }

    /// Returns the status that follows when the directory in `store` is complete; `None`: it stays. A Redis that is
    /// not announced is not named: another one may be written already.
    pub fn after(&self, store: &S) -> Option<Self> {
        let is_announced = self.whole.is_none() && self.next.as_ref() == Some(store);
        is_announced.then(|| Self {
            whole: Some(store.clone()),
            next: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: StoreNames<char> = StoreNames {
        whole: Some('a'),
        next: None,
    };
    const ANNOUNCED: StoreNames<char> = StoreNames {
        whole: None,
        next: Some('b'),
    };

    #[test]
    fn a_redis_is_announced_before_it_is_written_and_named_when_it_is_complete() {
        assert_eq!(WHOLE.before(&'b'), Some(ANNOUNCED));
        assert_eq!(StoreNames::default().before(&'b'), Some(ANNOUNCED));
        assert!(ANNOUNCED.is_behind(&'b') && StoreNames::default().is_behind(&'b'));
        let named = ANNOUNCED.after(&'b').unwrap();
        assert_eq!((named.whole, named.next), (Some('b'), None));
    }

    #[test]
    fn what_the_status_says_already_is_not_written() {
        assert_eq!(WHOLE.before(&'a'), None);
        assert_eq!(ANNOUNCED.before(&'b'), None);
        assert_eq!(WHOLE.after(&'a'), None);
        assert!(!WHOLE.is_behind(&'a'));
    }

    #[test]
    fn a_redis_that_is_not_announced_any_more_is_not_named() {
        let other = WHOLE.before(&'c').unwrap();
        assert_eq!(other.after(&'b'), None);
        assert_eq!(WHOLE.after(&'b'), None);
        assert!(other.before(&'b').is_some());
    }
}
