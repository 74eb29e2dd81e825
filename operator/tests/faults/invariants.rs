//! What must hold after every fault, numbered. Each checker answers with what it found wrong.

mod accounts;
mod declared;
mod order;
mod releases;
mod restart;
mod texts;
mod violation;

pub use accounts::accounts;
pub use declared::declared;
pub use order::{Order, Point};
pub use releases::Releases;
pub use restart::{is_write, restart};
pub use texts::{metrics, texts};
pub use violation::Violation;
