//! Rules of the operator, which depend on what it has read alone: no client, no clock and no type of Kubernetes or
//! Redis. The operator carries out what they answer; the exhaustive model runs them in every state within its bounds.

pub mod absence;
pub mod key;
pub mod store_names;
pub mod sweep;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    /// Crates that rules may use: this one, `water-domain` and its crates, for texts, numbers, hashes and errors.
    const ALLOWED: [&str; 9] = [
        "chrono",
        "crc32fast",
        "hex",
        "serde",
        "serde_json",
        "sha2",
        "thiserror",
        "water-domain",
        "water-operator-core",
    ];

    /// Names of the packages that this one needs, and of those that these name.
    fn dependencies() -> BTreeSet<String> {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--package", env!("CARGO_PKG_NAME"), "--offline"])
            .args(["--edges", "normal", "--prefix", "none", "--depth", "2"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let tree = String::from_utf8(output.stdout).unwrap();
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect()
    }

    #[test]
    fn rules_depend_on_nothing_that_asks_or_waits() {
        let found = dependencies();
        assert!(found.contains("water-domain"), "{found:?}");
        let others = found
            .iter()
            .filter(|name| !ALLOWED.contains(&name.as_str()));
        assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
    }
}
