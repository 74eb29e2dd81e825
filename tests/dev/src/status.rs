//! `cargo dev status`: the services that run, and those that do not.

use anyhow::Result;

use crate::cluster::NODE_ADDRESS;
use crate::clusters::Clusters;
use crate::credentials::Credentials;
use crate::process::run;
use crate::product::NAMESPACE;
use crate::{namespace, portal, supervisor};

/// Prints the state of the development cluster.
pub fn print() -> Result<()> {
    let Some(cluster) = Clusters::of_user()?.development() else {
        println!("No cluster. Start one: cargo dev up");
        return Ok(());
    };
    let state = if namespace::init_process(&cluster)?.is_some() {
        "running"
    } else {
        "stopped"
    };
    println!(
        "The cluster at {NODE_ADDRESS} is {state}; its files: {}",
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
