//! Settings that the operator and the chart give each program, and those that the program reads.

use anyhow::{Context, Result, ensure};
use water_e2e::{Cluster, RELEASE};

#[tokio::test]
async fn every_variable_of_a_pod_is_known_to_its_program() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for component in ["gate", "departements", "history", "portal", "operator"] {
        let deployment = format!("deployment/{RELEASE}-{component}");
        let program = format!("/usr/bin/water-{component}");
        let help = cluster
            .kubectl
            .run(&["exec", &deployment, "--", &program, "--help"])?;
        let object = cluster.kubectl.get(&deployment)?;
        let variables = object["spec"]["template"]["spec"]["containers"][0]["env"]
            .as_array()
            .with_context(|| format!("{deployment} sets no variable"))?;
        for variable in variables {
            let name = variable["name"]
                .as_str()
                .context("a variable without a name")?;
            ensure!(
                help.split_whitespace().any(|word| word == name),
                "{deployment} sets {name}, of which its program says nothing:\n{help}"
            );
        }
    }
    Ok(())
}
