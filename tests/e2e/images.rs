//! The pods' processes as the images start them.

use anyhow::Result;
use water_e2e::{Cluster, Component};

/// Names let `ps`, core dumps and profilers distinguish the programs.
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
