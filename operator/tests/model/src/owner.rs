//! Actions of owners and administrators.

use crate::action::Action;
use crate::bounds::{Bounds, Material, spend};
use crate::cluster::{Admits, Phase, Secret, Spec};
use crate::records::SLOTS;
use crate::system::System;

/// The system after such an action; `None`: it cannot happen.
pub fn after(mut next: System, action: Action, bounds: &Bounds) -> Option<System> {
    match action {
        Action::Create(key) => {
            let created = next.keys.iter();
            let created = created
                .filter(|key| key.object.phase != Phase::Absent)
                .count();
            let known = &mut next.keys[key].object;
            let may = created < usize::from(bounds.keys) && known.phase == Phase::Absent;
            may.then_some(())?;
            known.phase = Phase::Declared;
            known.spec.brought = match bounds.material {
                Material::Generated => None,
                Material::Brought => Some((key * SLOTS) as u8),
                Material::Shared => Some(0),
            };
        }
        Action::Rotate(key) => {
            spend(&mut next.left.rotations)?;
            next.keys[key].is_declared().then_some(())?;
            let is_generated = bounds.material == Material::Generated;
            let spec = next.keys[key].object.spec;
            if is_generated && spec.revision > 0 {
                return None;
            }
            let another = spec
                .brought
                .map(|hash| (hash + 1) % SLOTS as u8 + hash / 4 * 4);
            (is_generated || another? % SLOTS as u8 != 0).then_some(())?;
            next.edit(key, |spec| {
                spec.brought = another;
                spec.revision += u8::from(is_generated);
            });
        }
        Action::Suspend(key) => {
            spend(&mut next.left.suspensions)?;
            next.keys[key].is_declared().then_some(())?;
            next.edit(key, |spec| spec.suspended = !spec.suspended);
        }
        Action::Delete(key) => {
            next.keys[key].is_declared().then_some(())?;
            if next.keys[key].object.finalizer {
                next.change_object(key, None, |object| {
                    object.phase = Phase::Deleting;
                    object.status.told = false;
                });
            } else {
                next.end(key);
            }
        }
        Action::DeleteSecret(key)
        | Action::EditSecret(key)
        | Action::RestoreSecret(key)
        | Action::TakeSecret(key) => {
            let left = &mut next.left;
            spend(match action {
                Action::TakeSecret(_) => &mut left.foreign,
                _ => &mut left.hands,
            })?;
            let known = next.keys[key];
            let Secret::Own { hash, retiring, .. } = known.secret else {
                return None;
            };
            known.is_declared().then_some(())?;
            let secret = match action {
                Action::DeleteSecret(_) => Secret::Missing,
                Action::TakeSecret(_) => Secret::Foreign,
                Action::RestoreSecret(_) => {
                    let before = known.object.status.previous.map(|(before, _)| before);
                    Secret::Own {
                        hash: before.filter(|before| *before != hash)?,
                        retiring: None,
                        is_edited: false,
                    }
                }
                _ => Secret::Own {
                    hash,
                    retiring,
                    is_edited: true,
                },
            };
            next.change_secret(key, secret, None);
            next.keys[key].disturbed = true;
        }
        Action::FreeSecret(key) => {
            (next.keys[key].secret == Secret::Foreign).then_some(())?;
            next.change_secret(key, Secret::Missing, None);
        }
        Action::Misname(key) => {
            spend(&mut next.left.misnames)?;
            let status = next.keys[key].object.status;
            (status.named && !status.misnamed).then_some(())?;
            next.change_object(key, None, |object| object.status.misnamed = true);
        }
        Action::Admit(admits) => {
            spend(&mut next.left.hindrances)?;
            (next.admits != admits).then_some(())?;
            next.admits = admits;
            if admits == Admits::No {
                next.disturb();
            }
        }
        Action::Refuse(key) => {
            spend(&mut next.left.refusals)?;
            let known = &mut next.keys[key];
            matches!(known.object.phase, Phase::Declared | Phase::Deleting).then_some(())?;
            known.refused = !known.refused;
        }
        Action::DeleteApi => {
            spend(&mut next.left.deletions)?;
            next.exists.then_some(())?;
            next.exists = false;
            next.disturb();
        }
        Action::Move => {
            spend(&mut next.left.moves)?;
            next.named = 1 - next.named;
        }
        Action::CreateApi => {
            (!next.exists).then_some(())?;
            (next.exists, next.api) = (true, !next.api);
            // Directories of the former one are closed.
            for leader in &mut next.leaders {
                leader.give_up_claim();
            }
        }
        _ => return None,
    }
    Some(next)
}

impl System {
    fn edit(&mut self, key: usize, change: impl FnOnce(&mut Spec)) {
        self.change_object(key, None, |object| {
            change(&mut object.spec);
            object.status.told = false;
        });
    }
}
