//! Has the pages embedded anew when they have changed, and when there are some for the first time.

use std::path::Path;

fn main() {
    // Cargo takes what is not there for changed, and would compile the crate at every turn.
    let watched = if Path::new("web/dist").exists() {
        "web/dist"
    } else {
        "web"
    };
    println!("cargo::rerun-if-changed={watched}");
}
