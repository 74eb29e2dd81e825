//! Hints to check for changes: loads announce themselves on a separate connection. It is opened in parallel with the
//! checks, so that a server which accepts and stays silent delays none.

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use water_database::{Changes, Database};

use crate::refresh::EACH;

/// Forwards hints until the receiver is closed. Without a connection a change is seen a second later.
pub(super) async fn forward(database: Database, hints: mpsc::Sender<()>) {
    let mut pace = interval(EACH);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !hints.is_closed() {
        pace.tick().await;
        let Ok(mut changes) = Changes::listen(&database).await else {
            continue;
        };
        while changes.next().await {
            // A hint that waits there already will be followed by a check as well.
            let _ = hints.try_send(());
        }
    }
}
