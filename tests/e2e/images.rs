//! What the images make of the pods' processes.

use anyhow::Result;
use water_e2e::{Cluster, Component};

/// So that `ps`, core dumps and profilers tell the programs apart.
#[tokio::test]
async fn each_process_is_called_as_its_package_is() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for component in Component::ALL {
        let package = format!("water-{}", component.label());
        for pod in component.pods(&cluster)? {
            let name = pod.process_name()?;
            assert_eq!(name, package[..package.len().min(15)], "{}", pod.name);
        }
    }
    Ok(())
}
