//! File descriptors: as many as the process may have.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit to the highest that this process may set itself, and returns it. Container runtimes start
/// with a limit of 1 024 and allow far more, for the sake of programs that use `select`; here every
/// connection is a descriptor.
pub fn raise() -> io::Result<u64> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_allowed_is_taken() {
        let most = raise().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE), Ok((most, most)));
    }
}
