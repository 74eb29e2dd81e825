//! Golden files of a package's tests, in its folder `tests/golden`.

use std::path::Path;

/// Compares with the file of that name; with `UPDATE_GOLDEN=1` writes it.
pub fn check(name: &str, actual: &str) {
    // Set by cargo for each test program.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("tests are run by cargo");
    let path = Path::new(&package).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("tests/golden can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        actual == expected,
        "{} is stale; look at what `UPDATE_GOLDEN=1` changes. Rendered:\n{actual}",
        path.display()
    );
}
