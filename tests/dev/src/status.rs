//! `cargo dev status`: what runs, and what does not.

use anyhow::Result;

use crate::clusters::Clusters;
use crate::credentials::Credentials;
use crate::process::run;
use crate::product::NAMESPACE;
use crate::{namespace, portal, supervisor};

/// Prints the state of this checkout's development cluster.
pub fn print() -> Result<()> {
    let Some(cluster) = Clusters::of_user()?.development() else {
        println!("No cluster of this checkout. Start one: cargo dev up");
        return Ok(());
    };
    let state = if namespace::init_process(&cluster)?.is_some() {
        "running"
    } else {
        "stopped"
    };
    println!(
        "Cluster {} at {} is {state}; its files: {}",
        cluster.number,
        cluster.node_address(),
        cluster.folder.display()
    );
    if state == "stopped" {
        println!("Start it: cargo dev up");
        return Ok(());
    }
    for (name, condition) in supervisor::conditions(&cluster)? {
        match condition.last_end {
            None => println!("  {name}: running"),
            Some(end) => println!(
                "  {name}: started again {} times, last: {end}",
                condition.restarts
            ),
        }
    }
    println!(
        "\n{}",
        portal::describe(&cluster, &Credentials::read(&cluster.folder)?)?
    );
    println!("{}", run(cluster.kubectl().args(["get", "nodes"]))?);
    let product = [
        "--namespace",
        NAMESPACE,
        "get",
        "waterdataapis,apikeys,pods",
    ];
    println!(
        "{}",
        run(cluster.kubectl().args(product))
            .unwrap_or_else(|error| format!("The product is not installed: {error:#}"))
    );
    Ok(())
}
