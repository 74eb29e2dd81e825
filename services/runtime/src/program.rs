//! What a binary says about itself.

use std::sync::LazyLock;

/// Name, version and purpose of a binary; made by [`program!`](crate::program!).
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The package's name, such as `water-gate`.
    pub name: &'static str,
    /// See [`version!`](crate::version!).
    pub version: &'static str,
    /// The package's description, one line.
    pub about: &'static str,
}

/// The version of the calling binary: its image's `WATER_VERSION`, else its package's.
#[macro_export]
macro_rules! version {
    () => {
        $crate::program::version(env!("CARGO_PKG_VERSION"))
    };
}

/// What the build of an image sets. It is read at start and not compiled in, so that a version of
/// the same sources needs no binaries of its own.
const VARIABLE: &str = "WATER_VERSION";

/// The version of the image that the process runs in, or `package` where it runs in none.
pub fn version(package: &'static str) -> &'static str {
    static IMAGE: LazyLock<Option<String>> = LazyLock::new(|| {
        let version = std::env::var(VARIABLE).ok();
        version.filter(|version| !version.is_empty())
    });
    IMAGE.as_deref().unwrap_or(package)
}

/// The [`Program`] of the calling binary.
#[macro_export]
macro_rules! program {
    () => {
        $crate::Program {
            name: env!("CARGO_PKG_NAME"),
            version: $crate::version!(),
            about: env!("CARGO_PKG_DESCRIPTION"),
        }
    };
}
