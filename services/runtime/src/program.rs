//! What a binary says about itself.

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

/// The version of the calling binary: the build's `WATER_VERSION`, else the package's.
#[macro_export]
macro_rules! version {
    () => {
        match option_env!("WATER_VERSION") {
            Some(version) => version,
            None => env!("CARGO_PKG_VERSION"),
        }
    };
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
