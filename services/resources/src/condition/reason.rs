//! Types and reasons of conditions: the words in which the operator reports, and by which others read its reports.

/// Defines an enum whose variants are the words that the API shows.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$word_doc])* $word),* }

        impl $name {
            /// Words of the list.
            pub const ALL: &[Self] = &[$(Self::$word),*];

            /// Returns the word as the API shows it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$word => stringify!($word)),* }
            }

            /// Reads a word that the API shows; `None` if the list lacks it.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words! {
    /// Types of conditions.
    ConditionType {
        /// ApiKey: some WaterDataApi admits it.
        Accepted,
        /// ApiKey: its Secret holds the key.
        SecretReady,
        /// ApiKey: the directory holds what is declared.
        Synced,
        /// WaterDataApi: requests for data are answered.
        Available,
        /// WaterDataApi: every pod runs what is declared, or is on its way there.
        Progressing,
        /// WaterDataApi: some pods are missing. ApiKey, while it is true: something other than its key is wrong.
        Degraded,
        /// WaterDataApi: the schema is that of the version.
        MigrationsComplete,
        /// WaterDataApi: the key directory is complete and its plans are those declared.
        DirectorySynced,
        /// WaterDataApi: both public datasets have rows.
        DataLoaded,
        /// WaterDataApi: clients can reach the gate.
        ExposureReady,
        /// WaterDataApi with a portal: its identity provider can be used.
        SignInReady,
        /// The declared state is in force.
        Ready,
        /// The operator works on it.
        Reconciling,
        /// Somebody's help is needed.
        Stalled,
    }
}

words! {
    /// Reasons of conditions.
    Reason {
        /// A WaterDataApi admits the key.
        Admitted,
        /// The key is accepted.
        Active,
        /// The key is refused until it is resumed.
        Suspended,
        /// The key is answered 403: its plan does not open the API.
        PlanWithoutAccess,
        /// The key is refused until its time has come.
        NotYetValid,
        /// The key is refused: its time is over.
        Expired,
        /// A deletion waits.
        Deleting,
        /// No WaterDataApi, or several, would accept the key.
        ApiAmbiguous,
        /// The named WaterDataApi does not exist.
        ApiNotFound,
        /// The spec names another WaterDataApi than the one where the key was issued.
        ApiMismatch,
        /// The WaterDataApi admits no keys of the namespace.
        NamespaceNotAdmitted,
        /// The namespace may not name the account.
        AccountNotBound,
        /// The WaterDataApi has no such plan.
        PlanUnknown,
        /// The Secret's name is taken.
        SecretConflict,
        /// Another ApiKey has the same key.
        KeyConflict,
        /// The key was revoked and is not taken back.
        RevokedInStore,
        /// The Secret was gone or changed too often.
        ReissueLimit,
        /// No Secret exists, since the key was brought along.
        NotNeeded,
        /// The Secret holds the key.
        Written,
        /// An earlier step is not done.
        Waiting,
        /// The directory holds what is declared.
        Published,
        /// The directory holds what is declared, on a Redis that could lose it in a failover.
        ReplicasUnguarded,
        /// The directory holds keys of more ApiKeys that are gone than a sweep removes by itself.
        SweepHeld,
        /// The directory holds what is declared, and the gates' Redis user could write key records.
        GateMayWrite,
        /// The directory holds what is declared, on a Redis that evicts keys when its memory is full.
        EvictionAllowed,
        /// The directory holds what is declared, and the operator may not ask Redis whether it evicts keys, or
        /// what the gates' user may do; or Redis does not know that user.
        Unverified,
        /// The directory holds what is declared, and remembers many revocations.
        ManyRevocations,
        /// The directory holds what is declared, and keys of one account have different plans.
        PlansDiffer,
        /// A gate that serves does not follow this directory.
        GateWithoutLease,
        /// The API server refused or did not answer.
        ApiServerError,
        /// The API server's definitions lack fields.
        DefinitionsOutdated,
        /// The clocks of Redis and of the operator differ.
        ClocksApart,
        /// Another controller or a webhook undoes what the operator writes.
        WriteConflict,
        /// The operator itself failed.
        OperatorError,
        /// Gates may still act on what was declared before.
        AwaitingGates,
        /// Redis cannot be reached, or does not answer as it should.
        StoreUnavailable,
        /// Redis accepts no writes: it is a replica, or a primary without enough of them.
        StoreReadOnly,
        /// Redis has no memory left.
        StoreOutOfMemory,
        /// Redis still reads its dump.
        StoreLoading,
        /// Redis refuses the password.
        StoreWrongPassword,
        /// A cluster of Redis lacks slots.
        StoreClusterDown,
        /// Redis refuses a command: a right is missing.
        StoreDenied,
        /// The directory belongs to another installation.
        DirectoryOwned,
        /// The spec asks for namespaces that the operator does not watch.
        ScopeTooNarrow,
        /// A Secret that the spec names is missing or lacks a key.
        SecretInvalid,
        /// The portal's part of the spec is wrong or missing.
        PortalInvalid,
        /// The spec asks for what the operator cannot do.
        NotSupported,
        /// The object is admitted by the schema, and cannot be read.
        Undecodable,
        /// The API server does not accept the Secret.
        Rejected,
        /// An object of a child's name belongs to somebody else.
        ObjectConflict,
        /// No rollout begins.
        Paused,
        /// The state is as declared.
        Complete,
        /// Pods are replaced.
        RollingOut,
        /// A rollout makes no progress.
        RolloutFailed,
        /// The migration runs.
        Migrating,
        /// The migration gave up.
        MigrationFailed,
        /// A pod of each component answers.
        PodsReady,
        /// A component lacks pods.
        PodsMissing,
        /// The datasets both have records.
        Loaded,
        /// A dataset is empty.
        NoData,
        /// A service does not answer the operator.
        NotAnswering,
        /// The identity provider can be used.
        ProviderUsable,
        /// The identity provider cannot be used.
        ProviderUnusable,
        /// The identity provider refuses the client.
        ClientRefused,
        /// No configuration asks for it.
        NotConfigured,
        /// The way in has no address yet.
        AddressPending,
        /// The way in has an address.
        AddressAssigned,
        /// No problem is known.
        Healthy,
    }
}
