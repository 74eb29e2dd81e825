//! The pages, compiled into the binary.

use rust_embed::RustEmbed;

/// What `cargo dev web` builds.
#[derive(RustEmbed)]
#[folder = "web/dist"]
#[allow_missing = true]
struct Built;

/// The pages as they are served.
#[derive(Clone, Debug)]
pub struct Pages {}

/// A binary that was built without pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this binary was built without the portal's pages; run `cargo dev web` and build it again")]
pub struct NoPages;

impl Pages {
    /// The pages of this binary.
    pub fn embedded() -> Result<Self, NoPages> {
        Built::get("index.html").map(|_| Self {}).ok_or(NoPages)
    }
}
