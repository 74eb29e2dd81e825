//! The portal's Role.

use super::Portal;
use crate::Result;
use crate::world::api;

#[tokio::test]
async fn the_portal_has_rights_to_keys_and_to_look_at_its_own_api_alone() -> Result {
    let portal = Portal::in_namespace("portal-role").await?;
    portal.world.apply(&api())?;
    let may = |arguments: &[&str]| {
        let mut all = vec!["auth", "can-i"];
        all.extend(arguments);
        // It also ends with an error where the answer is no.
        portal.kubectl(&all).is_ok_and(|answer| answer == "yes")
    };
    for verb in ["get", "list", "create", "patch", "delete"] {
        assert!(may(&[verb, "apikeys"]), "{verb}");
    }
    assert!(may(&["get", "waterdataapis/water-data"]));
    for question in [
        "update apikeys",
        "watch apikeys",
        "deletecollection apikeys",
        "patch apikeys --subresource=status",
        "list apikeys --all-namespaces",
        "get waterdataapis/other",
        "list waterdataapis",
        "patch waterdataapis/water-data",
        "get secrets",
        "list secrets",
        "get configmaps",
        "get pods",
        "create serviceaccounts --subresource=token",
    ] {
        let words: Vec<&str> = question.split(' ').collect();
        assert!(!may(&words), "{question}");
    }
    Ok(())
}
