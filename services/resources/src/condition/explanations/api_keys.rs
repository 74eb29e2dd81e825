//! Explanations of the reasons in conditions of ApiKeys.

use super::{Explanation, STORE, Severity};
use crate::condition::Reason;

/// Reasons in conditions of ApiKeys.
pub const OF_API_KEYS: &[Explanation] = &[
    Explanation {
        reasons: &[Reason::Active],
        severity: Severity::Fine,
        meaning: "the key is accepted",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::Suspended],
        severity: Severity::Fine,
        meaning: "it is refused, because `spec.suspend` is set",
        remedy: "clear `spec.suspend`",
    },
    Explanation {
        reasons: &[Reason::PlanWithoutAccess],
        severity: Severity::Fine,
        meaning: "requests are answered 403: the plan has no API access",
        remedy: "name another plan",
    },
    Explanation {
        reasons: &[Reason::NotYetValid],
        severity: Severity::Fine,
        meaning: "it is refused until `spec.notBefore`",
        remedy: "wait, or set an earlier time",
    },
    Explanation {
        reasons: &[Reason::Expired],
        severity: Severity::Stalled,
        meaning: "it is refused since `spec.expirationTime`",
        remedy: "set a later time, or delete the ApiKey",
    },
    Explanation {
        reasons: &[Reason::Deleting],
        severity: Severity::Waiting,
        meaning: "the deletion waits for Redis, or for the gates in `status.waitingFor`",
        remedy: "see [When something is away](#when-something-is-away); a silent gate is waited for at most 130 s, \
            one that reads another Redis until it is gone. The message names a Redis of another WaterDataApi where \
            that one may have the key: have it repaired, or its gates ended",
    },
    Explanation {
        reasons: &[Reason::Admitted],
        severity: Severity::Fine,
        meaning: "`Accepted`: a WaterDataApi admits the key",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::ApiAmbiguous],
        severity: Severity::Waiting,
        meaning: "`spec.apiRef` is missing, and no WaterDataApi or several admit the namespace; `Reconciling`, since \
            one may be on its way",
        remedy: "create one, or set `spec.apiRef`",
    },
    Explanation {
        reasons: &[Reason::ApiNotFound],
        severity: Severity::Waiting,
        meaning: "the named WaterDataApi does not exist, and no other key directory holds the key; a key that was \
            issued keeps working; `Reconciling`",
        remedy: "create it, or create another ApiKey",
    },
    Explanation {
        reasons: &[Reason::ApiMismatch],
        severity: Severity::Stalled,
        meaning: "`spec.apiRef` names another WaterDataApi than `status.api`, where the key was issued: it was added \
            after somebody else had written the status. The key stays there; edits that restrict it take effect, \
            others wait",
        remedy: "create another ApiKey for the one that it is meant for, and delete this one; find out who writes \
            `apikeys/status`",
    },
    Explanation {
        reasons: &[Reason::NamespaceNotAdmitted],
        severity: Severity::Stalled,
        meaning: "the WaterDataApi admits no keys of this namespace; a key that was issued is withdrawn",
        remedy: "create the ApiKey elsewhere, or widen `api.apiKeys.allowedNamespaces`",
    },
    Explanation {
        reasons: &[Reason::AccountNotBound],
        severity: Severity::Stalled,
        meaning: "the namespace has no label for this account; a key that was issued is withdrawn",
        remedy: "have the namespace labelled, see [Keys](#keys)",
    },
    Explanation {
        reasons: &[Reason::PlanUnknown],
        severity: Severity::Stalled,
        meaning: "the WaterDataApi has no such plan; a key that was issued keeps its last limits. Edits that restrict \
            it take effect (`suspend`, an earlier expiry, another hash), others wait",
        remedy: "name a plan that exists, or add it",
    },
    Explanation {
        reasons: &[Reason::SecretConflict],
        severity: Severity::Stalled,
        meaning: "the Secret of that name is not this ApiKey's, and is not adopted; edits that restrict the key take \
            effect, others wait",
        remedy: "delete that Secret, or create an ApiKey with another `secretName`; after a restore, `water-operator \
            adopt`",
    },
    Explanation {
        reasons: &[Reason::KeyConflict],
        severity: Severity::Stalled,
        meaning: "another ApiKey has the same hash, or the same `keyId`",
        remedy: "bring another key",
    },
    Explanation {
        reasons: &[Reason::RevokedInStore],
        severity: Severity::Stalled,
        meaning: "this hash was revoked before",
        remedy: "generated key: raise `spec.rotation.revision`. Own key: bring another, or annotate the ApiKey with \
            `waterdata.dev/reinstate: <first 12 digits of the hash>@<time of the tombstone>`, as the message \
            spells it out",
    },
    Explanation {
        reasons: &[Reason::Rejected],
        severity: Severity::Stalled,
        meaning: "the API server refuses the Secret (a quota, a policy, one that is immutable, or its name)",
        remedy: "change the quota or policy that the message names, delete the immutable Secret, or create an ApiKey \
            with another `secretName`",
    },
    Explanation {
        reasons: &[Reason::ApiServerError],
        severity: Severity::Waiting,
        meaning: "the API server refused or did not answer; tried again. With `Synced=Unknown` beside `Ready=True` the \
            key was in force as declared. `Degraded`: the account's label cannot be written, which the key does \
            not need",
        remedy: "read the message: a right is missing (to the Secrets of a namespace that `rbac.keyNamespaces` leaves out, say), or an admission policy, a webhook or a quota stands against it",
    },
    Explanation {
        reasons: &[Reason::WriteConflict],
        severity: Severity::Stalled,
        meaning: "another controller or a webhook undoes what the operator writes; tried again after 1 to 10 minutes, \
            or as soon as the spec is edited. Edits that restrict the key take effect. `Degraded`: only the \
            account's label is undone",
        remedy: "exempt ApiKeys and their Secrets from it; `metadata.managedFields` may name it",
    },
    Explanation {
        reasons: &[Reason::OperatorError],
        severity: Severity::Waiting,
        meaning: "the operator itself failed; tried again",
        remedy: "read its log, restart it",
    },
    Explanation {
        reasons: &[Reason::Written],
        severity: Severity::Fine,
        meaning: "`SecretReady`: the Secret holds the key",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::NotNeeded],
        severity: Severity::Fine,
        meaning: "`SecretReady`: the key is your own, there is no Secret",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::Waiting],
        severity: Severity::Waiting,
        meaning: "an earlier condition is not met",
        remedy: "look at the other conditions",
    },
    Explanation {
        reasons: &[Reason::Published],
        severity: Severity::Fine,
        meaning: "`Synced`: the key directory holds what is declared",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::AwaitingGates],
        severity: Severity::Waiting,
        meaning: "gates have not acknowledged the change; `status.waitingFor` names their pods",
        remedy: "look at those pods; see [When something is away](#when-something-is-away)",
    },
    Explanation {
        reasons: STORE,
        severity: Severity::Waiting,
        meaning: "Redis does not do what the operator asks; tried again. `Synced=Unknown`: the key was in force as \
            declared and stays `Ready` for the 120 s that gates serve without Redis, then `Ready` is `Unknown`",
        remedy: "see [Redis, by message](#redis-by-message)",
    },
    Explanation {
        reasons: &[Reason::DirectoryOwned],
        severity: Severity::Stalled,
        meaning: "the key directory belongs to another installation",
        remedy: "look at the WaterDataApi",
    },
    Explanation {
        reasons: &[Reason::ReissueLimit],
        severity: Severity::Stalled,
        meaning: "the Secret was deleted or edited more than three times within ten minutes; the last key works",
        remedy: "find out by whom; raise `spec.rotation.revision` for a key at once",
    },
    Explanation {
        reasons: &[Reason::Undecodable],
        severity: Severity::Stalled,
        meaning: "the schema admits the object, but the operator cannot read it (a comma in a time)",
        remedy: "correct the field that the message names; until then the key stays as it was. It can be suspended, \
            expired and deleted, and goes with the admission of its namespace",
    },
];
