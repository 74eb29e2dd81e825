//! Exploring within bounds, to the end or until a rule is broken, and saying how much that was.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Debug;
use std::hash::Hash;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, HasDiscoveries, Model};

/// Explores all states; every rule must hold in each, and what the model is about must happen in some.
/// With `WATER_MODEL=full` the wider bounds are explored too.
pub fn holds<M, B>(model: impl Fn(B) -> M, bounds: B, wider: B)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
    B: Copy + Debug,
{
    explore(model(bounds), &bounds);
    if env::var("WATER_MODEL").is_ok_and(|asked| asked == "full") {
        explore(model(wider), &wider);
    }
}

fn explore<M>(model: M, bounds: &dyn Debug)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let threads = available_parallelism().map_or(1, NonZero::get);
    let checker = model.checker().threads(threads);
    // Neither a count of states nor a depth ends it: the end of what can be reached does, or a failure.
    let checker = checker.finish_when(HasDiscoveries::AnyFailures);
    let mut seconds = Elapsed::default();
    let explored = checker.spawn_bfs().join_and_report(&mut seconds);
    explored.assert_properties();
    assert!(explored.is_done());
    println!(
        "{} states, {} transitions, {:.1} s: {bounds:?}",
        explored.unique_state_count(),
        explored.state_count(),
        seconds.0.as_secs_f64(),
    );
}

/// Explores until a rule is broken, which must happen.
pub fn is_found<M>(model: M, mistake: &dyn Debug, bounds: &dyn Debug)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let first = HasDiscoveries::AnyFailures;
    let explored = model.checker().finish_when(first).spawn_bfs().join();
    let found = explored.discoveries();
    let broken = found
        .iter()
        .find(|(rule, _)| explored.discovery_classification(rule).to_string() == "counterexample");
    let (rule, path) = broken.unwrap_or_else(|| panic!("{mistake:?} is not found in {bounds:?}"));
    println!(
        "{mistake:?}, {} states: not \"{rule}\" after {:?}",
        explored.unique_state_count(),
        path.clone().into_actions()
    );
}

/// Duration of an exploration.
#[derive(Default)]
struct Elapsed(Duration);

impl<M: Model> Reporter<M> for Elapsed {
    fn report_checking(&mut self, data: ReportData) {
        self.0 = data.duration;
    }

    fn report_discoveries(&mut self, _: &M, _: BTreeMap<&'static str, ReportDiscovery<M>>)
    where
        M::Action: Debug + PartialEq,
        M::State: Debug + Hash + PartialEq,
    {
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(10)
    }
}
