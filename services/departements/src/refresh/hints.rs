//! Hints that it is time to look: loads announce themselves on a connection of its own. It is
//! opened beside the looks, so that a server which accepts and says nothing delays none.

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use water_database::{Changes, Database};

use crate::refresh::EACH;

/// Why it is time to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hint {
    /// A load changed a dataset.
    Changed,
    /// The connection ended: the server may be another one when it is back.
    Disconnected,
}

/// Forwards hints until nobody takes them. Without a connection a change is seen a second later.
pub(super) async fn forward(database: Database, hints: mpsc::Sender<Hint>) {
    let mut pace = interval(EACH);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !hints.is_closed() {
        pace.tick().await;
        let Ok(mut changes) = Changes::listen(&database).await else {
            continue;
        };
        while changes.next().await {
            // One that waits there already will be followed by a look as well.
            let _ = hints.try_send(Hint::Changed);
        }
        // Fails when nobody takes hints any more, which ends the loop.
        let _ = hints.send(Hint::Disconnected).await;
    }
}
