//! Golden files of this crate's tests.

use std::path::Path;

/// Compares with `tests/golden/<name>`; with `UPDATE_GOLDEN=1` writes it.
pub fn check(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("tests/golden can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        actual == expected,
        "{} is stale; look at what `UPDATE_GOLDEN=1 cargo test -p water-operator` changes. Rendered:\n{actual}",
        path.display()
    );
}
