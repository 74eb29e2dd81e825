//! The three Redis users and the least that each needs. A compromised gate can read the directory,
//! but it cannot make a key; a compromised portal cannot even read it.

use std::fmt;
use std::str::FromStr;

use crate::keys::Instance;

/// SHA-256 of a Redis user's password, which is all that an ACL needs.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Box<str>);

/// Text that is no password hash; it is not repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a password hash is a SHA-256 as 64 lower-case hexadecimal digits")]
pub struct InvalidPasswordHash;

impl FromStr for PasswordHash {
    type Err = InvalidPasswordHash;

    fn from_str(text: &str) -> Result<Self, InvalidPasswordHash> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(digit) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidPasswordHash)
        }
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash")
    }
}

/// Commands of every connection: it introduces itself, chooses its database, and learns where the slots of a Redis
/// Cluster are or are moving to.
const CONNECT: &str =
    "+auth +hello +ping +select +client|setname +cluster|slots +asking +info +time";

/// The lines of an ACL file (behind `ACL SETUSER`, the same words without `user`): operator, gate, and
/// portal where there is one. The names are those of `operator-url`, `gate-url` and `portal-url`.
pub fn redis_acl(
    instance: &Instance,
    operator: (&str, &PasswordHash),
    gate: (&str, &PasswordHash),
    portal: Option<(&str, &PasswordHash)>,
) -> Vec<String> {
    let line = |(name, password): (&str, &PasswordHash), rules: String| {
        format!("user {name} on resetpass #{} {rules}", password.0)
    };
    [
        line(operator, operator_rules(instance)),
        line(gate, gate_rules(instance)),
    ]
    .into_iter()
    .chain(portal.map(|portal| line(portal, portal_rules(instance))))
    .collect()
}

/// The operator's user: everything in its own directory, nothing elsewhere, no administration.
/// `ACL DRYRUN` shows it whether the gate's user has more rights than it should.
fn operator_rules(instance: &Instance) -> String {
    let prefix = instance.prefix();
    format!(
        "resetchannels resetkeys ~{prefix}* -@all {CONNECT} +acl|dryrun +evalsha +script|load \
         +get +set +persist +hget +hset +hdel +hexists +hgetall +hlen +hscan +xadd +zmscore \
         +zrange +zrem"
    )
}

/// The gate's user: reads the directory, writes its lease, last uses and usage, runs the limiter.
fn gate_rules(instance: &Instance) -> String {
    let prefix = instance.prefix();
    let limiter = instance.limiter_pattern();
    let usage = instance.usage_pattern();
    format!(
        "resetchannels resetkeys %R~{prefix}records:* %R~{prefix}plans %R~{prefix}feed \
         %R~{prefix}meta ~{prefix}gates ~{prefix}used ~{limiter} ~{usage} -@all {CONNECT} \
         +evalsha +script|load +get +hget +hgetall +xread +xrevrange +hset +hincrby +hdel +zadd \
         +set +lindex +lrange +llen +lpop +rpop +rpush +pexpire"
    )
}

/// The portal's user: keeps its sessions and its own counts, reads the accounts' counters and usage, and nothing of the
/// directory.
fn portal_rules(instance: &Instance) -> String {
    let web = instance.web_pattern();
    let limiter = instance.limiter_pattern();
    let usage = instance.usage_pattern();
    format!(
        "resetchannels resetkeys ~{web} %R~{limiter} %R~{usage} -@all {CONNECT} +evalsha \
         +evalsha_ro +script|load +get +getex +set +del +pexpire +hmget +zadd +zrange +zrem \
         +lindex +llen +lpop +rpush +lrem"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_rules_are_these() {
        let rules = gate_rules(&"water.water-data".parse().unwrap());
        let golden = "resetchannels resetkeys %R~wd:{water.water-data}:records:* \
            %R~wd:{water.water-data}:plans %R~wd:{water.water-data}:feed \
            %R~wd:{water.water-data}:meta ~wd:{water.water-data}:gates ~wd:{water.water-data}:used \
            ~wd:rl:{*}:water.water-data:? ~wd:use:{*}:water.water-data:????-??-?? -@all +auth \
            +hello +ping +select +client|setname +cluster|slots +asking +info +time +evalsha \
            +script|load +get +hget +hgetall +xread +xrevrange +hset +hincrby +hdel +zadd +set \
            +lindex +lrange +llen +lpop +rpop +rpush +pexpire";
        assert_eq!(rules, golden);
    }

    #[test]
    fn the_portals_rules_are_these() {
        let rules = portal_rules(&"water.water-data".parse().unwrap());
        let golden = "resetchannels resetkeys ~wd:web:{*}:water.water-data:* \
            %R~wd:rl:{*}:water.water-data:? %R~wd:use:{*}:water.water-data:????-??-?? -@all +auth \
            +hello +ping +select +client|setname +cluster|slots +asking +info +time +evalsha \
            +evalsha_ro +script|load +get +getex +set +del +pexpire +hmget +zadd +zrange +zrem \
            +lindex +llen +lpop +rpush +lrem";
        assert_eq!(rules, golden);
    }

    #[test]
    fn the_operators_rules_are_these() {
        let rules = operator_rules(&"water.water-data".parse().unwrap());
        let golden = "resetchannels resetkeys ~wd:{water.water-data}:* -@all +auth +hello +ping \
            +select +client|setname +cluster|slots +asking +info +time +acl|dryrun +evalsha \
            +script|load +get +set +persist +hget +hset +hdel +hexists +hgetall +hlen +hscan +xadd \
            +zmscore +zrange +zrem";
        assert_eq!(rules, golden);
    }

    #[test]
    fn a_password_is_never_taken_for_its_hash() {
        assert_eq!("hunter2".parse::<PasswordHash>(), Err(InvalidPasswordHash));
        assert_eq!(
            "A".repeat(64).parse::<PasswordHash>(),
            Err(InvalidPasswordHash)
        );
    }
}
