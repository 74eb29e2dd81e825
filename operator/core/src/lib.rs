//! Rules of the operator, which depend on what it has read alone: no client, no clock and no type of Kubernetes or
//! Redis. The operator carries out what they answer; the exhaustive model runs them in every state within its bounds.

pub mod key;
pub mod store_names;
pub mod sweep;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    /// Crates with which a rule could ask or wait for something.
    const FORBIDDEN: [&str; 8] = [
        "hyper",
        "k8s-openapi",
        "kube",
        "redis",
        "tokio",
        "tracing",
        "water-keystore",
        "water-resources",
    ];

    /// Names of all packages that this one needs.
    fn dependencies() -> BTreeSet<String> {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--package", env!("CARGO_PKG_NAME"), "--offline"])
            .args(["--edges", "normal", "--prefix", "none"])
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
        let forbidden = FORBIDDEN.into_iter().filter(|name| found.contains(*name));
        assert_eq!(forbidden.collect::<Vec<_>>(), [""; 0]);
    }
}
