//! Projections of an open store.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::{Error, Result, Seq, json_text};
use crate::catalog::{
    Effect, MaterializedView, Pattern, Payload, Projection, ProjectionEntry, ProjectionFn, Read, Rule, State,
};
use crate::store::change::versions::check_name;
use crate::store::{Place, Store, Tree};

/// A projection as of one instant.
#[derive(Clone, Debug)]
pub struct ProjectionView {
    view: Arc<MaterializedView>,
    seq: Seq,
}

impl ProjectionView {
    /// The projection of this name in `state`.
    pub(in crate::store) fn new(state: &State, name: &str) -> Result<Self> {
        let missing = || Error::not_found(format!("projection '{name}' does not exist"));
        let view = state.views().get(name).ok_or_else(missing)?.clone();
        Ok(Self { view, seq: state.seq })
    }

    /// The commit as of which it is.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Its rule.
    pub fn rule(&self) -> &Rule {
        self.view.rule()
    }

    /// The value of `key`: that of the first node in path order, if several have the key. O(log entries).
    ///
    /// # Errors
    /// `InvalidArgument` if `key` has more or fewer fields than the projection's keys.
    pub fn get(&self, key: &[Payload]) -> Result<Option<Payload>> {
        Ok(self.view.get(key)?.into_iter().next())
    }

    /// All values of `key`, in the order of their nodes' paths; at most one if the projection is not a bag.
    ///
    /// # Errors
    /// As [`ProjectionView::get`].
    pub fn get_all(&self, key: &[Payload]) -> Result<Vec<Payload>> {
        self.view.get(key)
    }

    /// All entries, by key and path.
    pub fn entries(&self) -> impl Iterator<Item = ProjectionEntry> {
        self.view.entries()
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.view.count()
    }

    /// The entries whose keys lie between the bounds, by key and path. A key of fewer fields comes before those that
    /// continue it.
    ///
    /// # Errors
    /// `InvalidArgument` if a bound has more fields than the projection's keys.
    pub fn range(
        &self,
        low: Bound<&[Payload]>,
        high: Bound<&[Payload]>,
    ) -> Result<impl Iterator<Item = ProjectionEntry>> {
        self.view.range(low, high)
    }

    /// The entries whose keys begin with the fields `first` and then, if given, with a text that begins with `text`.
    ///
    /// # Errors
    /// `InvalidArgument` if `first` has more fields than the projection's keys.
    pub fn prefix(&self, first: &[Payload], text: Option<&str>) -> Result<impl Iterator<Item = ProjectionEntry>> {
        self.view.prefix(first, text)
    }
}

impl Tree {
    /// Makes a projection that is part of the store, or replaces the one with its name: readers see the old one or the
    /// new one, never one half built. Not in a transaction.
    ///
    /// # Errors
    /// `InvalidArgument` if the name or the projection is not sound; `AlreadyExists` if a projection by a function has
    /// the name.
    pub fn put_projection(&self, name: &str, projection: Projection) -> Result<()> {
        check(name)?;
        Rule::Fields(projection.clone()).check()?;
        json_text::check(&projection, "the projection")?;
        let name = name.to_owned();
        self.in_store("creating a projection")?.commit_effects(move |state| {
            if state.views().get(&name).is_some() && !state.is_declared(&name) {
                return Err(Error::already_exists(format!("projection '{name}' is made by a function; drop it first")));
            }
            Ok(vec![Effect::PutProjection { name: name.clone(), projection: projection.clone() }])
        })?;
        Ok(())
    }

    /// Makes a projection by a function, which lives as long as this store is open, or replaces the one with its name. The
    /// function is called in commits, so it should be fast; it must return the same for the same input. Not in a
    /// transaction.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is not sound; `AlreadyExists` if one that is part of the store has it.
    pub fn put_projection_fn(&self, name: &str, pattern: Pattern, bag: bool, function: ProjectionFn) -> Result<()> {
        check(name)?;
        let rule = Rule::Function { pattern, bag, function };
        rule.check()?;
        self.in_store("creating a projection")?.change_views(|state| {
            if state.is_declared(name) {
                return Err(Error::already_exists(format!("projection '{name}' is part of the store; drop it first")));
            }
            state.put_view(name, rule);
            state.catch_up(None);
            Ok(())
        })
    }

    /// Removes a projection. Not in a transaction.
    ///
    /// # Errors
    /// `NotFound` if there is none with the name.
    pub fn drop_projection(&self, name: &str) -> Result<()> {
        let store = self.in_store("dropping a projection")?;
        let state = store.call()?.store.state()?;
        if state.is_declared(name) {
            let name = name.to_owned();
            store.commit_effects(move |_| Ok(vec![Effect::DropProjection { name: name.clone() }]))?;
            return Ok(());
        }
        ProjectionView::new(&state, name)?;
        store.change_views(|state| {
            state.drop_view(name);
            Ok(())
        })
    }

    /// A projection as it is now; in a transaction with its own writes.
    ///
    /// # Errors
    /// `NotFound` if there is none with the name.
    pub fn projection(&self, name: &str) -> Result<ProjectionView> {
        match &self.place {
            Place::Store(store) => ProjectionView::new(&*store.state()?, name),
            // What it shows may depend on any node.
            Place::Transaction(transaction) => transaction
                .project([Read::Tree, Read::Projection(name.to_owned())], |state| ProjectionView::new(state, name)),
        }
    }

    /// The names of all projections.
    ///
    /// # Errors
    /// `Closed`.
    pub fn projections(&self) -> Result<Vec<String>> {
        let names = |state: &State| Ok(state.views().iter().map(|(name, _)| name.clone()).collect());
        self.place.look(|| Read::Projections, names)
    }

    /// The store, for what cannot be done in a transaction.
    pub(in crate::store) fn in_store(&self, what: &str) -> Result<&Store> {
        self.place.in_store(what)
    }
}

impl Store {
    /// Changes what lives in this process only, between commits.
    fn change_views(&self, change: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let _turn = self.commits().turn()?;
        let mut next = State::clone(&*self.current()?);
        change(&mut next)?;
        drop(self.commits().newest().replace(Arc::new(next)));
        Ok(())
    }
}

fn check(name: &str) -> Result<()> {
    check_name(name, |name| format!("'{name}' cannot be the name of a projection;"))
}
