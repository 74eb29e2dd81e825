//! Explanations of the reasons in conditions of WaterDataApis.

use super::{Explanation, STORE, Severity};
use crate::condition::Reason;

/// Reasons in conditions of WaterDataApis.
pub const OF_WATER_DATA_APIS: &[Explanation] = &[
    Explanation {
        reasons: &[Reason::Complete],
        severity: Severity::Fine,
        meaning: "everything is as declared",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::RollingOut],
        severity: Severity::Waiting,
        meaning: "pods are being replaced; the message counts them",
        remedy: "wait",
    },
    Explanation {
        reasons: &[Reason::RolloutFailed],
        severity: Severity::Stalled,
        meaning: "a Deployment made no progress in `rollout.progressDeadlineSeconds`; old pods serve",
        remedy: "look at its newest pods; roll back or set a tag that works",
    },
    Explanation {
        reasons: &[Reason::Migrating],
        severity: Severity::Waiting,
        meaning: "the migration Job runs",
        remedy: "wait",
    },
    Explanation {
        reasons: &[Reason::MigrationFailed],
        severity: Severity::Stalled,
        meaning: "the migration Job gave up; services are untouched",
        remedy: "read the Job's log, remove the cause, delete the Job",
    },
    Explanation {
        reasons: &[Reason::Paused],
        severity: Severity::Fine,
        meaning: "`spec.paused` is set; no rollouts",
        remedy: "clear `spec.paused`",
    },
    Explanation {
        reasons: &[Reason::PodsReady],
        severity: Severity::Fine,
        meaning: "`Available`: every component but the portal has a pod that answers",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::PodsMissing],
        severity: Severity::Waiting,
        meaning: "`Available`: a component has none. `Degraded`: some are missing",
        remedy: "look at the pods that the message names",
    },
    Explanation {
        reasons: &[Reason::GateWithoutLease],
        severity: Severity::Warning,
        meaning: "`Degraded`: gates serve that do not follow the key directory; a revoked key may work there",
        remedy: "see that `gate-url` and `operator-url` name one Redis, and let a paused rollout go on",
    },
    Explanation {
        reasons: &[Reason::SweepHeld],
        severity: Severity::Warning,
        meaning: "`Degraded`: the key directory holds keys of many ApiKeys that are gone without having been revoked \
            (their finalizers were stripped, or the list of ApiKeys is wrong); their keys still work, and \
            nothing is removed unasked",
        remedy: "restore the ApiKeys, or annotate the WaterDataApi with `waterdata.dev/sweep-up-to: \"<that many>\"`",
    },
    Explanation {
        reasons: &[Reason::DefinitionsOutdated],
        severity: Severity::Warning,
        meaning: "`Degraded`: the custom resource definitions are of an earlier version, and fields that they lack are \
            dropped from what is written",
        remedy: "`water-operator crd apply`, see [Upgrade and rollback](#upgrade-and-rollback)",
    },
    Explanation {
        reasons: &[Reason::ClocksApart],
        severity: Severity::Warning,
        meaning: "`Degraded`: the clocks of Redis and of the operator differ by more than a minute, and nothing is \
            removed by its age meanwhile. What begins, ends and rotates goes by Redis' clock",
        remedy: "have both hosts synchronise their clocks",
    },
    Explanation {
        reasons: &[Reason::Healthy],
        severity: Severity::Fine,
        meaning: "`Degraded=False`: no pod is missing",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::Published],
        severity: Severity::Fine,
        meaning: "`DirectorySynced`: the key directory is complete",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::ReplicasUnguarded],
        severity: Severity::Warning,
        meaning: "it is complete, but a failover of Redis could undo a revocation",
        remedy: "set `min-replicas-to-write 1` and `min-replicas-max-lag 5` in Redis",
    },
    Explanation {
        reasons: &[Reason::GateMayWrite],
        severity: Severity::Warning,
        meaning: "it is complete, but the gates' Redis user may change it",
        remedy: "set the ACL lines of `water-operator redis-acl`",
    },
    Explanation {
        reasons: &[Reason::EvictionAllowed],
        severity: Severity::Warning,
        meaning: "it is complete, but Redis may evict keys when its memory is full",
        remedy: "set `maxmemory-policy noeviction`",
    },
    Explanation {
        reasons: &[Reason::Unverified],
        severity: Severity::Warning,
        meaning: "it is complete, but Redis does not say whether it evicts keys, or what the gates' user may do, or \
            does not know that user",
        remedy: "set the ACL lines of `water-operator redis-acl` on every node",
    },
    Explanation {
        reasons: &[Reason::ManyRevocations],
        severity: Severity::Warning,
        meaning: "it is complete, but Redis remembers more than 250 000 revocations of the last 90 days, some 30 MB",
        remedy: "replace keys less often (`rotation.periodSeconds`), and do not delete and create ApiKeys again and \
            again",
    },
    Explanation {
        reasons: &[Reason::PlansDiffer],
        severity: Severity::Warning,
        meaning: "it is complete; ApiKeys of one account have different plans, and share its counters",
        remedy: "give them one plan, if that was not meant",
    },
    Explanation {
        reasons: STORE,
        severity: Severity::Waiting,
        meaning: "Redis does not do what the operator asks; tried again. `Degraded`: keys of ApiKeys that are gone \
            without having been revoked are not taken away, evictions are not noticed, revocations that are 90 days \
            old are kept, last uses are not shown, gates that do not follow the key directory are not found, or gates \
            that still read the former Redis miss restrictions",
        remedy: "see [Redis, by message](#redis-by-message)",
    },
    Explanation {
        reasons: &[Reason::ApiServerError],
        severity: Severity::Waiting,
        meaning: "the API server refused or did not answer; tried again. `DirectorySynced` says so too while keys wait \
            for it. `Degraded`: as the reasons of Redis, or nobody notices if a watch misses changes or the \
            definitions lack fields",
        remedy: "read the message: most often a right is missing",
    },
    Explanation {
        reasons: &[Reason::DirectoryOwned],
        severity: Severity::Stalled,
        meaning: "the directory in Redis was written for another namespace's uid",
        remedy: "give this WaterDataApi its own Redis, or annotate it with `waterdata.dev/take-over: <uid of the \
            message>`",
    },
    Explanation {
        reasons: &[Reason::SecretInvalid],
        severity: Severity::Stalled,
        meaning: "a Secret is missing, lacks a key or cannot be read; no pod is touched. Keys need Redis' Secret only",
        remedy: "create or correct the Secret that the message names",
    },
    Explanation {
        reasons: &[Reason::PortalInvalid],
        severity: Severity::Stalled,
        meaning: "something that `spec.portal` says or names is missing or wrong; everything but the portal is rolled \
            out",
        remedy: "read the message, which names each field and its remedy; see [Portal](#portal)",
    },
    Explanation {
        reasons: &[Reason::Loaded],
        severity: Severity::Fine,
        meaning: "`DataLoaded`: both datasets have records",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::NoData],
        severity: Severity::Waiting,
        meaning: "`DataLoaded`: a dataset is empty; its resource answers 404 `no_data`",
        remedy: "[load it](../../services/ingest/README.md)",
    },
    Explanation {
        reasons: &[Reason::NotAnswering],
        severity: Severity::Waiting,
        meaning: "`DataLoaded=Unknown`: departements does not answer the operator; `SignInReady=Unknown`: the portal \
            does not",
        remedy: "look at its pods",
    },
    Explanation {
        reasons: &[Reason::ProviderUsable],
        severity: Severity::Fine,
        meaning: "`SignInReady`: the portal has read the identity provider's discovery document",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::ProviderUnusable],
        severity: Severity::Warning,
        meaning: "`SignInReady`: the identity provider is away, or is not what `spec.portal.oidc` says; nobody can \
            sign in, and who is signed in goes on",
        remedy: "read the message: look at the provider, `issuer`, `caRef` and `networkPolicy.egress`",
    },
    Explanation {
        reasons: &[Reason::ClientRefused],
        severity: Severity::Warning,
        meaning: "`SignInReady`: the identity provider refuses the portal's client id or secret; nobody can sign in",
        remedy: "read the message: correct `clientId`, or the Secret that `clientSecretRef` names; then sign in",
    },
    Explanation {
        reasons: &[Reason::NotConfigured],
        severity: Severity::Fine,
        meaning: "`ExposureReady`: no Ingress is declared; the gate's Service is the way in",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::AddressAssigned],
        severity: Severity::Fine,
        meaning: "`ExposureReady`: the Ingress has an address",
        remedy: "none needed",
    },
    Explanation {
        reasons: &[Reason::AddressPending],
        severity: Severity::Waiting,
        meaning: "the Ingress has no address yet",
        remedy: "check `ingress.className` and the ingress controller",
    },
    Explanation {
        reasons: &[Reason::Waiting],
        severity: Severity::Waiting,
        meaning: "an earlier step is not done",
        remedy: "look at the other conditions",
    },
    Explanation {
        reasons: &[Reason::ObjectConflict],
        severity: Severity::Stalled,
        meaning: "an object with the name of a child belongs to somebody else",
        remedy: "delete it, or give the WaterDataApi another name",
    },
    Explanation {
        reasons: &[Reason::Rejected],
        severity: Severity::Stalled,
        meaning: "the API server refuses a child object (rights, a quota or a policy)",
        remedy: "read the message, change what refuses",
    },
    Explanation {
        reasons: &[Reason::ScopeTooNarrow],
        severity: Severity::Stalled,
        meaning: "`allowedNamespaces` asks for more than the operator may watch, or the WaterDataApi is in a namespace \
            where it has no rights",
        remedy: "set `rbac.scope=Cluster`, or `from: Same`; add the namespace to `rbac.apiNamespaces`",
    },
    Explanation {
        reasons: &[Reason::Undecodable],
        severity: Severity::Stalled,
        meaning: "the schema admits the object, but the operator cannot read it; nothing is touched. Keys can be \
            restricted and revoked",
        remedy: "correct the field that the message names",
    },
    Explanation {
        reasons: &[Reason::NotSupported],
        severity: Severity::Stalled,
        meaning: "the spec uses `autoscaling`, `httpRoute` or `onFailure: Rollback`",
        remedy: "set what the message names instead",
    },
];
