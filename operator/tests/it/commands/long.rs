//! Releases that wait until a Lease has run out, and in vain beside an operator that renews its own: 30 s.

use super::{finalizers, release, released};
use crate::Result;
use crate::world::{PATIENCE, World, api, brought};

#[tokio::test]
async fn release_waits_for_every_operators_lease_and_does_nothing_beside_one_that_runs() -> Result {
    let first = World::alone("release-a-stopped").await?;
    let second = first.with_own_operator("release-b-led").await?;
    let start = async |world: &World| {
        world.apply(&api())?;
        let running = world.operator("operator-0")?;
        world.in_force(&brought("acme", 'a')).await?;
        anyhow::Ok(running)
    };
    let (stopped, leading) = (start(&first).await?, start(&second).await?);
    stopped.stop(PATIENCE).await?;
    let (code, said) = release(&first, true).await?;
    assert_eq!(code, Some(1));
    let why = "an operator leads in namespace release-b-led";
    assert!(said.contains(why), "{said}");
    assert_eq!(leading.exit_status()?, None);
    for world in [&first, &second] {
        assert_eq!(finalizers(world, "acme")?[0], "waterdata.dev/revoke");
    }
    let lease = first.get("lease/water-operator")?;
    assert_eq!(lease["spec"]["holderIdentity"], "", "not given back");
    // The first Lease is won at once and renewed until the second one has run out.
    leading.kill()?;
    released(&first, true).await?;
    for world in [&first, &second] {
        assert!(finalizers(world, "acme")?.is_null());
    }
    Ok(())
}
