//! The operator's and the gate's programs of the version before beside those of this one: operators
//! take turns over the same keys, as an upgrade and a rollback do, and a gate of each version is
//! asked all the while. The custom resource definitions and the rights are this version's.

use std::env;
use std::io::Write;
use std::path::PathBuf;

use water_domain::{KeyPrefix, PlainKey};

use crate::Result;
use crate::askers::Expected;
use crate::turns::{End, Turns};

/// The folder with `water-operator` and `water-gate` of the version before.
const FOLDER: &str = "WATER_FORMER_BINARIES";

/// Longer than any test.
const A_DAY: u32 = 86_400;

/// The folder, if there is one; else a word about what is not tested.
fn former() -> Option<PathBuf> {
    let folder = env::var_os(FOLDER).map(PathBuf::from);
    if folder.is_none() {
        // A passing test swallows eprintln!, and this must be seen.
        writeln!(
            std::io::stderr(),
            "not run: operators of two versions by turns, for {FOLDER} names no folder"
        )
        .expect("standard error can be written");
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_of_two_versions_take_turns_and_no_key_is_lost_or_revived() -> Result {
    let Some(former) = former() else {
        return Ok(());
    };
    let mut turns = Turns::new("former", former).await?;
    for name in ["kept", "paused", "rotated", "deleted"] {
        turns.issue(name).await?;
    }
    turns.bring("brought", &plain(1)).await?;
    turns.suspend("paused").await?;

    turns.forth(End::Stopped).await?;
    turns.bring("also-brought", &plain(2)).await?;
    turns.delete("deleted").await?;
    turns.delete("brought").await?;
    turns.resume("paused").await?;
    turns.suspend("turn-1").await?;
    let earlier = turns.rotate("rotated", 0).await?;
    turns.askers.expect(&earlier, Expected::Refused);
    turns.all_right().await?;

    turns.back(End::Killed).await?;
    turns.bring_again("brought", &plain(1)).await?;
    turns.delete("also-brought").await?;
    turns.suspend("paused").await?;
    turns.resume("turn-1").await?;
    turns.all_right().await?;

    turns.forth(End::Killed).await?;
    turns.bring_again("also-brought", &plain(2)).await?;
    turns.delete("turn-1").await?;
    turns.delete("turn-2").await?;
    turns.resume("paused").await?;
    turns.all_right().await?;

    turns.back(End::Stopped).await?;
    turns.delete("rotated").await?;
    turns.forth(End::Stopped).await?;
    turns.all_right().await
}

/// The version before does not rotate. It takes the earlier key of an overlap out of the status and
/// lets it stand in the directory. This version then knows the status only, and ends the overlap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overlap_goes_on_under_the_version_before_and_ends_once_this_one_is_back() -> Result {
    let Some(former) = former() else {
        return Ok(());
    };
    let mut turns = Turns::new("former-overlap", former).await?;
    for name in ["kept", "deleted"] {
        turns.issue(name).await?;
    }
    turns.forth(End::Stopped).await?;
    let kept = turns.rotate("kept", A_DAY).await?;
    let deleted = turns.rotate("deleted", A_DAY).await?;
    turns.askers.expect(&kept, Expected::Accepted);
    turns.askers.expect(&deleted, Expected::Accepted);

    turns.back(End::Stopped).await?;
    for name in ["kept", "deleted"] {
        turns.forgets_the_overlap(name).await?;
    }
    // Revoked is what the status names: here the version before leaves the earlier key alive.
    turns.delete("deleted").await?;
    turns.askers.all_right().await?;

    turns.askers.expect(&kept, Expected::Either);
    turns.askers.expect(&deleted, Expected::Either);
    turns.forth(End::Stopped).await?;
    turns.askers.expect(&kept, Expected::Refused);
    turns.askers.expect(&deleted, Expected::Refused);
    turns.all_right().await
}

fn plain(number: u8) -> PlainKey<'static> {
    PlainKey::generate(&KeyPrefix::default(), &[number; 48])
}
