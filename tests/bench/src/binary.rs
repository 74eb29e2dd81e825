//! The product's programs, built as this one is.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The program of that name beside this one: both are built alike.
pub fn beside(program: &str) -> Result<PathBuf> {
    let file = std::env::current_exe()?.with_file_name(program);
    file.canonicalize().with_context(|| {
        format!(
            "there is no {}: build it first; `cargo dev bench` does, and `cargo build --package {program}`",
            file.display()
        )
    })
}
