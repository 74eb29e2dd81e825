//! A sign-in and a logout at once: their commands reach Redis in every possible order.

use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use water_harness::Interceptor;
use water_keystore::{SessionKeys, SessionStart, Sessions};

use crate::sessions::{HOURS, at, keys, lives, watched};
use crate::site::Site;

/// Sessions whose commands wait for their turns.
struct Turns {
    sessions: Sessions,
    /// Waiting commands, each as the sender that lets it pass.
    commands: UnboundedReceiver<SyncSender<()>>,
    _interceptor: Interceptor,
}

impl Turns {
    async fn new(site: &Site) -> Self {
        // The connection's handshake is not among the ordered commands.
        let (sessions, interceptor) = watched(site).await;
        let (sender, commands) = unbounded_channel();
        interceptor.show(move |_, _| {
            let (pass, passed) = sync_channel(1);
            // A test that has ended lets everything pass.
            if sender.send(pass).is_ok() {
                let _ = tokio::task::block_in_place(|| passed.recv());
            }
        });
        Self {
            sessions,
            commands,
            _interceptor: interceptor,
        }
    }
}

/// Work over sessions whose commands wait.
struct Side<'a, T> {
    turns: &'a mut Turns,
    work: JoinHandle<T>,
    /// Sender that lets the waiting command pass.
    waiting: Option<SyncSender<()>>,
    done: Option<T>,
}

impl<'a, T: Send + 'static> Side<'a, T> {
    fn new(turns: &'a mut Turns, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            turns,
            work: tokio::spawn(work),
            waiting: None,
            done: None,
        }
    }

    /// Runs until a command waits or the work is done.
    async fn settle(&mut self) {
        if self.waiting.is_none() && self.done.is_none() {
            tokio::select! {
                pass = self.turns.commands.recv() => self.waiting = pass,
                done = &mut self.work => self.done = Some(done.unwrap()),
            }
        }
    }

    /// Lets the next command pass.
    fn pass(&mut self) {
        self.waiting.take().unwrap().send(()).unwrap();
    }
}

/// Enumerates the orders of the commands of two sides: at each place where both wait, which one passes.
#[derive(Default)]
struct Orders {
    choices: Vec<bool>,
    place: usize,
}

impl Orders {
    fn choose(&mut self) -> bool {
        if self.place == self.choices.len() {
            self.choices.push(false);
        }
        self.place += 1;
        self.choices[self.place - 1]
    }

    /// Moves on to the next order; false after the last.
    fn advance(&mut self) -> bool {
        self.place = 0;
        while self.choices.pop_if(|second| *second).is_some() {}
        match self.choices.last_mut() {
            Some(last) => *last = true,
            None => return false,
        }
        true
    }
}

/// Name that a logout gives.
#[derive(Clone, Copy)]
enum Named {
    Subject,
    Provider,
}

async fn end(sessions: Sessions, keys: SessionKeys, named: Named, seconds: i64) -> usize {
    let (now, provider) = (at(seconds), keys.provider);
    let ended = match named {
        Named::Subject => sessions.end_of_subject(&keys.subject, now, HOURS).await,
        Named::Provider => {
            let provider = provider.unwrap();
            sessions.end_of_provider(&provider, now, HOURS).await
        }
    };
    ended.unwrap()
}

/// A sign-in that takes a minute.
async fn begin(sessions: Sessions, keys: SessionKeys, asked: i64) -> bool {
    let began = SessionStart {
        asked: at(asked),
        signed_in: at(asked + 60),
    };
    sessions
        .begin(&keys, b"sealed", began, HOURS)
        .await
        .unwrap()
}

/// Numbers of results over all orders.
#[derive(Default, Debug)]
struct Tried {
    orders: usize,
    /// Sessions that were never written.
    refused: usize,
    /// Sessions that were written and then ended.
    ended: usize,
}

/// Runs a sign-in and a logout, dated half a minute after the sign-in's click, in every order of their commands.
async fn in_every_order(named: Named, sid: Option<&str>) -> Tried {
    let site = Site::new().await;
    let direct = Sessions::new(site.connection().await, site.instance.clone());
    let (mut one, mut other) = (Turns::new(&site).await, Turns::new(&site).await);
    let (mut orders, mut tried) = (Orders::default(), Tried::default());
    loop {
        let name = tried.orders.to_string();
        let sid = sid.map(|sid| format!("{sid}-{name}"));
        let anna = keys(&name, &format!("anna-{name}"), sid.as_deref());
        let (sign_in, logout) = (one.sessions.clone(), other.sessions.clone());
        let mut sign_in = Side::new(&mut one, begin(sign_in, anna, 0));
        let mut logout = Side::new(&mut other, end(logout, anna, named, 30));
        loop {
            sign_in.settle().await;
            logout.settle().await;
            match (sign_in.waiting.is_some(), logout.waiting.is_some()) {
                (false, false) => break,
                (true, true) if orders.choose() => logout.pass(),
                (true, _) => sign_in.pass(),
                (false, true) => logout.pass(),
            }
        }
        assert!(!lives(&direct, &anna).await, "{:?}", orders.choices);
        let begun = sign_in.done.unwrap();
        assert_eq!(usize::from(begun), logout.done.unwrap());
        tried.orders += 1;
        tried.ended += usize::from(begun);
        tried.refused += usize::from(!begun);
        if !orders.advance() {
            return tried;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_of_a_subject_at_any_moment_of_a_sign_in_leaves_no_session() {
    let tried = in_every_order(Named::Subject, None).await;
    assert!(tried.refused > 0 && tried.ended > 0, "{tried:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_of_the_providers_session_at_any_moment_of_a_sign_in_leaves_no_session() {
    let tried = in_every_order(Named::Provider, Some("sid")).await;
    assert!(tried.refused > 0 && tried.ended > 0, "{tried:?}");
}

#[tokio::test]
async fn a_sign_in_that_began_after_a_logout_begins_a_session() {
    let site = Site::new().await;
    let sessions = Sessions::new(site.connection().await, site.instance.clone());
    let anna = keys("a", "anna", Some("sid"));
    for named in [Named::Subject, Named::Provider] {
        assert_eq!(end(sessions.clone(), anna, named, 30).await, 0);
    }
    assert!(!begin(sessions.clone(), anna, 29).await);
    assert!(begin(sessions.clone(), anna, 30).await);
    assert!(lives(&sessions, &anna).await);
}

#[tokio::test]
async fn a_logout_that_is_written_late_does_not_take_a_later_one_back() {
    let site = Site::new().await;
    let sessions = Sessions::new(site.connection().await, site.instance.clone());
    let anna = keys("a", "anna", Some("sid"));
    for seconds in [30, 10] {
        end(sessions.clone(), anna, Named::Provider, seconds).await;
    }
    assert!(!begin(sessions.clone(), anna, 20).await);
}
