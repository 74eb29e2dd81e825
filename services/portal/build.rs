//! Builds the crate again when the pages are: what is not there yet cannot be watched otherwise.

use std::path::Path;

fn main() {
    let built = Path::new("web/dist");
    let watched = if built.exists() { "web/dist" } else { "web" };
    if Path::new(watched).exists() {
        println!("cargo::rerun-if-changed={watched}");
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
}
