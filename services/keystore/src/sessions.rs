//! Browser sessions of the portal: sealed values that expire, found by their own name, by their
//! subject and by the identity provider's session. What is sealed, and how, only the portal knows.
//!
//! Each command has one key, so that a Redis Cluster takes all of them. The portal's user needs GET,
//! GETEX, SET, DEL, ZADD, ZRANGE, ZREM and PEXPIRE on `wd:web:{*}:<instance>:*`.
//!
//! A session is listed in its indexes first and written last; in between it reads when the sessions of
//! each index were last ended. Ending them notes the time in the index first, then lists it and writes an
//! empty value at each listed session's key, and a session is written only where there is no value. So
//! either the ending lists the session, or the session reads of the ending: one whose sign-in began before
//! its ending never lives on.

use std::time::Duration;

use redis::{Cmd, cmd};
use water_domain::Timestamp;

use crate::connection::Connection;
use crate::failure::StoreError;
use crate::keys::{Instance, WebName};

/// Time after which a session that nobody uses ends.
const IDLE: Duration = Duration::from_mins(30);
/// Time longer than a sign-in takes to write what it has listed; its commands have 2 s each.
const BEGINNING: Duration = Duration::from_mins(5);
/// Member of an index, in addition to sessions, with the time at which they were last ended.
const ENDING: &str = "ended";
/// The value of a session that was ended by its index.
const ENDED: &str = "";
/// The most sessions of a subject; the oldest ends for the next.
const PER_SUBJECT: usize = 10;

/// Names by which a session is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionKeys {
    /// The session's own name.
    pub session: WebName,
    /// Name of the person who signed in.
    pub subject: WebName,
    /// The identity provider's session, if it reports one.
    pub provider: Option<WebName>,
}

/// Times at which a session began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionStart {
    /// Time at which its reader was sent to the identity provider.
    pub asked: Timestamp,
    /// Time at which its reader returned.
    pub signed_in: Timestamp,
}

/// Access of the portal to its sessions.
#[derive(Clone, Debug)]
pub struct Sessions {
    connection: Connection,
    instance: Instance,
}

impl Sessions {
    /// Uses a connection for [`crate::connection::Purpose::Directory`].
    pub fn new(connection: Connection, instance: Instance) -> Self {
        Self {
            connection,
            instance,
        }
    }

    /// Checks that Redis answers, and lets the portal read its sessions.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.read(&WebName::digest(b"")).await.map(|_| ())
    }

    /// Keeps a session that ends at most `length` after its reader's return. The session can be found before it can be
    /// used, so that it can always be ended. False: it was ended since its reader was sent to the identity provider,
    /// and has not begun.
    pub async fn begin(
        &self,
        keys: &SessionKeys,
        sealed: &[u8],
        began: SessionStart,
        length: Duration,
    ) -> Result<bool, StoreError> {
        let session = keys.session.to_string();
        for index in self.indexes(keys) {
            self.note(&index, &session, began.signed_in, length).await?;
            let (_, ended) = self.listed(&index).await?;
            if ended.is_some_and(|ended| ended > began.asked.as_millis() as f64) {
                return Ok(false);
            }
        }
        let mut write = cmd("SET");
        write
            .arg(self.instance.session(keys.session))
            .arg(sealed)
            .arg("NX")
            .arg("PX")
            .arg(IDLE.as_millis() as u64);
        let written: Option<String> = self.connection.run("keep a session", &write).await?;
        if written.is_some() {
            let index = self.instance.sessions_of_subject(&keys.subject);
            self.bound(&index, began.signed_in).await?;
        }
        Ok(written.is_some())
    }

    /// Ends the oldest sessions beyond ten. Those that have ended by themselves do not count; they
    /// stay listed for as long as they could be only about to begin.
    async fn bound(&self, index: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut living = Vec::new();
        let (sessions, _) = self.listed(index).await?;
        for (session, began) in sessions {
            let age = now.as_millis() as f64 - began;
            let mut read = cmd("GET");
            read.arg(self.instance.session(&session));
            if self.read_by(&read).await?.is_some() {
                living.push(session);
            } else if age > BEGINNING.as_millis() as f64 {
                self.forget(index, &session).await?;
            }
        }
        let surplus = living.len().saturating_sub(PER_SUBJECT);
        for session in living.drain(..surplus) {
            self.end_other(&session).await?;
            self.forget(index, &session).await?;
        }
        Ok(())
    }

    /// The sealed session; none if it has ended.
    pub async fn read(&self, session: &WebName) -> Result<Option<Vec<u8>>, StoreError> {
        let mut read = cmd("GET");
        read.arg(self.instance.session(session));
        self.read_by(&read).await
    }

    /// Reads the session, and marks it as in use: it does not end for being idle in the next half an hour.
    pub async fn use_and_read(&self, session: &WebName) -> Result<Option<Vec<u8>>, StoreError> {
        let mut read = cmd("GETEX");
        read.arg(self.instance.session(session))
            .arg("PX")
            .arg(IDLE.as_millis() as u64);
        self.read_by(&read).await
    }

    async fn read_by(&self, command: &Cmd) -> Result<Option<Vec<u8>>, StoreError> {
        let found: Option<Vec<u8>> = self.connection.run("read a session", command).await?;
        Ok(found.filter(|sealed| sealed != ENDED.as_bytes()))
    }

    /// Ends a session.
    pub async fn end(&self, keys: &SessionKeys) -> Result<(), StoreError> {
        let session = keys.session.to_string();
        let mut delete = cmd("DEL");
        delete.arg(self.instance.session(&session));
        let () = self.connection.run("end a session", &delete).await?;
        for index in self.indexes(keys) {
            self.forget(&index, &session).await?;
        }
        Ok(())
    }

    /// Ends all sessions of a subject, and those whose sign-in began before `now`; returns their number. None lasts
    /// longer than `length`.
    pub async fn end_of_subject(
        &self,
        subject: &WebName,
        now: Timestamp,
        length: Duration,
    ) -> Result<usize, StoreError> {
        let index = self.instance.sessions_of_subject(subject);
        self.end_listed(&index, now, length).await
    }

    /// Ends likewise all sessions that derive from one session at the identity provider.
    pub async fn end_of_provider(
        &self,
        session: &WebName,
        now: Timestamp,
        length: Duration,
    ) -> Result<usize, StoreError> {
        let index = self.instance.sessions_of_provider(session);
        self.end_listed(&index, now, length).await
    }

    async fn end_listed(
        &self,
        index: &str,
        now: Timestamp,
        length: Duration,
    ) -> Result<usize, StoreError> {
        self.note(index, ENDING, now, length).await?;
        let (sessions, _) = self.listed(index).await?;
        let mut ended = 0;
        for (session, _) in sessions {
            ended += usize::from(self.end_other(&session).await?);
            self.forget(index, &session).await?;
        }
        Ok(ended)
    }

    /// Takes what may be taken once within `lifetime`; returns false if it was taken already.
    pub async fn take(&self, once: &WebName, lifetime: Duration) -> Result<bool, StoreError> {
        let mut take = cmd("SET");
        take.arg(self.instance.taken(once))
            .arg("")
            .arg("NX")
            .arg("PX")
            .arg(lifetime.as_millis().max(1) as u64);
        let taken: Option<String> = self
            .connection
            .run("take what is taken once", &take)
            .await?;
        Ok(taken.is_some())
    }

    /// Whether `once`, which may be taken once, was taken.
    pub async fn was_taken(&self, once: &WebName) -> Result<bool, StoreError> {
        let mut get = cmd("GET");
        get.arg(self.instance.taken(once));
        let taken: Option<String> = self
            .connection
            .run("see whether what is taken once was taken", &get)
            .await?;
        Ok(taken.is_some())
    }

    fn indexes(&self, keys: &SessionKeys) -> impl Iterator<Item = String> {
        let subject = self.instance.sessions_of_subject(&keys.subject);
        let provider = keys.provider.as_ref();
        let provider = provider.map(|session| self.instance.sessions_of_provider(session));
        [Some(subject), provider].into_iter().flatten()
    }

    /// Notes a session, or that all were ended, in an index, which is kept for as long as any of its
    /// sessions may last. What is written late does not take a later time back.
    async fn note(
        &self,
        index: &str,
        what: &str,
        at: Timestamp,
        length: Duration,
    ) -> Result<(), StoreError> {
        let mut add = cmd("ZADD");
        add.arg(index).arg("GT").arg(at.as_millis()).arg(what);
        let () = self.connection.run("note a session", &add).await?;
        let mut expire = cmd("PEXPIRE");
        expire.arg(index).arg(length.as_millis() as u64);
        self.connection.run("note a session", &expire).await
    }

    /// The sessions of an index, the oldest first, each with when it began, and when they were last
    /// ended; in milliseconds.
    async fn listed(&self, index: &str) -> Result<(Vec<(String, f64)>, Option<f64>), StoreError> {
        let mut list = cmd("ZRANGE");
        list.arg(index).arg(0).arg(-1).arg("WITHSCORES");
        let mut sessions: Vec<(String, f64)> = self.connection.run("list sessions", &list).await?;
        let ending = sessions.iter().position(|(name, _)| name == ENDING);
        let ended = ending.map(|place| sessions.remove(place).1);
        Ok((sessions, ended))
    }

    /// Ends a session that may be about to begin; returns whether it lived.
    async fn end_other(&self, session: &str) -> Result<bool, StoreError> {
        let mut end = cmd("SET");
        end.arg(self.instance.session(session))
            .arg(ENDED)
            .arg("GET")
            .arg("PX")
            .arg(BEGINNING.as_millis() as u64);
        let before: Option<Vec<u8>> = self.connection.run("end a session", &end).await?;
        Ok(before.is_some_and(|sealed| sealed != ENDED.as_bytes()))
    }

    async fn forget(&self, index: &str, session: &str) -> Result<(), StoreError> {
        let mut forget = cmd("ZREM");
        forget.arg(index).arg(session);
        self.connection.run("forget a session", &forget).await
    }
}
