//! Name, version and purpose of a binary.

use std::sync::LazyLock;

/// Name, version and purpose of a binary; made by [`program!`](crate::program!).
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The package's name, such as `water-gate`.
    pub name: &'static str,
    /// Version, from [`version!`](crate::version!).
    pub version: &'static str,
    /// The package's description, one line.
    pub about: &'static str,
}

/// Returns the version of the calling binary: its image's `WATER_VERSION`, else its package's.
#[macro_export]
macro_rules! version {
    () => {
        $crate::program::version(env!("CARGO_PKG_VERSION"))
    };
}

/// Variable that the build of an image sets. It is read at start and not compiled in, so that versions of the
/// same sources have the same binaries.
const VARIABLE: &str = "WATER_VERSION";

/// Returns the version of the image that the process runs in, or `package` where it runs in none.
pub fn version(package: &'static str) -> &'static str {
    static IMAGE: LazyLock<Option<String>> = LazyLock::new(|| {
        let version = std::env::var(VARIABLE).ok();
        version.filter(|version| !version.is_empty())
    });
    IMAGE.as_deref().unwrap_or(package)
}

/// Makes the [`Program`] of the calling binary.
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
