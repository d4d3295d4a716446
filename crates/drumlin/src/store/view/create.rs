//! Makes views, and tells of them.

use std::sync::Arc;

use super::catch_up::CatchUpReport;
use super::delta::same_columns;
use super::shape::Shape;
use crate::aggregate::GroupBy;
use crate::base::{Cancel, Error, Result};
use crate::catalog::{Effect, Path, Pattern, RowView, StalePolicy, State, ViewDefinition};
use crate::store::parts::{Proposal, VIEWS_DEPTH_MAX, Work};
use crate::store::read::resolve::table_at;
use crate::store::write::frame::create_table;
use crate::store::{Table, TableOptions};

/// What a view is of.
#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    /// What the columns are called that hold the names in a source's path, one for each part of the pattern that is no plain name, in order.
    /// They are the first of the view, and keys.
    pub path_columns: Vec<String>,
    /// Only rows for which this is true, in the language of filters, on columns of the sources. Default: all.
    pub filter: Option<String>,
    /// The other keys and the aggregates. Rows in which a key or the time is null are in no group.
    pub groups: GroupBy,
    /// What a read does if the view is behind. Default: brings it up to date first.
    pub stale: StalePolicy,
    /// Stops the making. Default: nothing does.
    pub cancel: Cancel,
}

/// A view, and whether it is in step.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewInfo {
    /// Its path.
    pub path: String,
    /// What it is of.
    pub definition: Arc<ViewDefinition>,
    /// The paths of the sources with which it is behind, in order.
    pub behind: Vec<String>,
}

impl Table {
    /// Makes a view: a table with a row for each group of the rows of all tables that the pattern `over` matches, its *sources*. From then on the
    /// commits that change these change it, too, by the rows that they add and take away. It is read as any table, with versions and times, and
    /// shows at each commit what [`crate::Dataset::aggregate`] of its sources would. Its key is the columns made of paths, then those to
    /// group by, then the time. The groups of many sources are made after the commit that makes it.
    ///
    /// Of what one row gives (minimum, maximum, first, last), a group is read again when that row is gone. Where more than a million rows would
    /// have to be read, or a commit changes very many groups, the view is *behind* with this source until the call that made the
    /// commit, or a later one, has caught up.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use drumlin::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    /// # use drumlin::{Aggregate, Function, GroupBy, Store, Tables, ViewOptions};
    /// # let rows = |n: Vec<i64>| RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(n)) as ArrayRef)]).unwrap();
    /// # let store = Store::memory()?;
    /// store.write("trades/A", rows(vec![1, 2]), &Default::default())?;
    /// let sum = Aggregate { name: "sum".into(), function: Function::Sum, of: Some("n".into()) };
    /// let groups = GroupBy { aggregates: vec![sum], ..GroupBy::default() };
    /// let options = ViewOptions { path_columns: vec!["sym".into()], groups, ..ViewOptions::default() };
    /// store.table("sums").create_view("trades/*", &options)?;
    /// store.append("trades/A", rows(vec![4]), &Default::default())?;
    /// let sums = store.table("sums").collect(&Default::default())?;
    /// assert_eq!(sums[0]["sum"].as_ref(), &Int64Array::from(vec![7]));
    /// # Ok::<(), drumlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if no table matches; `AlreadyExists` if the path holds one; `InvalidArgument` if a column is lacking, for aggregates that
    /// cannot go on without all rows, keys that are floats, sources whose rows expire, or whose columns would give the view other types, and
    /// where the view would be its own source, or over five levels of views.
    pub fn create_view(&self, over: &str, options: &ViewOptions) -> Result<CatchUpReport> {
        let store = self.place.in_store("creating a view")?;
        let path = Path::new(self.path())?;
        let pattern = Pattern::new(over)?;
        let call = store.call()?;
        let base = call.store.current()?;
        let ViewOptions { path_columns, filter, groups, stale, cancel } = options;
        let mut groups = groups.clone();
        groups.keys.retain(|key| !path_columns.contains(key));
        let definition = Arc::new(ViewDefinition {
            over: over.to_owned(),
            path_columns: path_columns.clone(),
            filter: filter.clone(),
            groups,
            stale: *stale,
        });
        let shape = check(&base, &path, &pattern, &definition).map_err(|e| e.context(format!("view '{path}'")))?;
        let schema = shape.schema();
        let key = schema.fields()[..shape.keys()].iter().map(|field| field.name().clone()).collect();
        let table = TableOptions { key, ..TableOptions::default() };
        let mut made = create_table(path.clone(), &schema, table, store.options().of_new_tables())?;
        let build = move |state: &State| {
            let mut effects = made(state)?;
            let table = state.next_table();
            effects.push(Effect::PutView { table, definition: definition.clone() });
            let sources: Vec<Path> = sources(state, &pattern)?.into_iter().map(|(path, _)| path).collect();
            effects.push(Effect::MarkView { table, sources, behind: true });
            Ok(effects)
        };
        store.commit(Proposal::new(base, Default::default(), Work::Build(Box::new(build))).of_views())?;
        let made = self.catch_up(cancel);
        if made.is_err() {
            // What cannot be made is not left behind.
            store.commit_effects(move |state| {
                let table = state.table_id_at(&path).filter(|table| state.row_views.get(*table).is_some());
                Ok(table.map(|table| Effect::DropTable { table }).into_iter().collect())
            })?;
        }
        made
    }

    /// What the table is a view of; `None` if it is no view.
    ///
    /// # Errors
    /// `NotFound` if there is no table.
    pub fn view_info(&self) -> Result<Option<ViewInfo>> {
        let path = Path::new(self.path())?;
        self.place.look(
            || crate::catalog::Read::Binding(path.clone()),
            |state| {
                let table = table_at(state, &path)?;
                Ok(state.row_views.get(table.id).map(|view| ViewInfo::new(&path, view)))
            },
        )
    }
}

impl ViewInfo {
    /// All views of a state, in the order of their paths.
    pub(in crate::store) fn all(state: &State) -> Vec<ViewInfo> {
        let views = state.row_views.iter();
        let mut all: Vec<ViewInfo> =
            views.filter_map(|(table, view)| state.path_of(table).map(|path| ViewInfo::new(path, view))).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    fn new(path: &Path, view: &RowView) -> Self {
        let behind = view.behind.keys().map(ToString::to_string).collect();
        ViewInfo { path: path.to_string(), definition: view.definition.clone(), behind }
    }
}

/// The tables with versions that a pattern matches.
fn sources(state: &State, pattern: &Pattern) -> Result<Vec<(Path, Arc<crate::table::TableState>)>> {
    let mut all = Vec::new();
    for (path, id) in state.ids_matching(pattern) {
        all.extend(state.table(id)?.filter(|table| table.newest().is_some()).map(|table| (path.clone(), table)));
    }
    Ok(all)
}

/// Checks a view that is to be made at `path`; returns how the rows of its first source become its.
fn check(state: &State, path: &Path, pattern: &Pattern, definition: &ViewDefinition) -> Result<Shape> {
    let ViewDefinition { over, path_columns, groups, .. } = definition;
    let variable = pattern.variable_parts();
    if path_columns.len() != variable {
        let given = path_columns.len();
        return Err(Error::invalid(format!(
            "path_columns has {given} names, but the pattern '{over}' has {variable} wildcard parts; give one name for each, as a \
             group of a view has rows of one table only"
        )));
    }
    if path_columns.is_empty() && groups.keys.is_empty() && groups.every.is_none() {
        return Err(Error::invalid("a view needs a key: columns to group by, buckets of time, or a pattern of paths"));
    }
    if groups.aggregates.is_empty() {
        return Err(Error::invalid("a view needs aggregates, such as a count"));
    }
    let is_over = |over: &str| Pattern::new(over).is_ok_and(|pattern| pattern.matches_path(path.as_str()));
    if let Some(over) = [over]
        .into_iter()
        .chain(state.row_views.iter().map(|(_, view)| &view.definition.over))
        .find(|over| is_over(over))
    {
        return Err(Error::invalid(format!(
            "its path is among those that a view is over, '{over}'; choose another path"
        )));
    }
    let mut depth = 0;
    let mut shape: Option<Shape> = None;
    for (source, table) in sources(state, pattern)? {
        let told = |e: Error| e.context(format!("'{source}'"));
        depth = depth.max(depth_of(state, table.id)?);
        let names = pattern.variable_names(source.as_str())?;
        let schema = table.schema().ok_or_else(|| Error::not_found(format!("'{source}' has no version")))?;
        let own = Shape::new(definition, names, &schema.0).map_err(told)?;
        if table.expires() {
            return Err(told(Error::invalid("its rows expire, so they would leave the view without a commit")));
        }
        match &shape {
            Some(first) if !same_columns(&first.schema(), &own.schema()) => {
                return Err(told(Error::invalid(
                    "its columns give the view other types than those of the tables before; cast them in the aggregates, or \
                     alter the table",
                )));
            }
            Some(_) => {}
            None => shape = Some(own),
        }
    }
    if depth >= VIEWS_DEPTH_MAX {
        return Err(Error::invalid(format!("there would be more than {VIEWS_DEPTH_MAX} views over each other")));
    }
    let shape = shape.ok_or_else(|| {
        Error::not_found(format!("no table matches '{over}'; make one first, as a view has the types of its sources"))
    })?;
    let schema = shape.schema();
    for (at, field) in schema.fields().iter().enumerate() {
        if schema.fields()[..at].iter().any(|other| other.name() == field.name()) {
            return Err(Error::invalid(format!("two columns of the view are called '{}'; rename one", field.name())));
        }
    }
    Ok(shape)
}

/// How many views are over each other, of which the last is kept in a table; 0 if it is none.
fn depth_of(state: &State, table: crate::base::TableId) -> Result<usize> {
    let Some(view) = state.row_views.get(table) else { return Ok(0) };
    let pattern = Pattern::new(&view.definition.over)?;
    let mut depth = 0;
    for (_, source) in state.ids_matching(&pattern).filter(|(_, id)| state.row_views.get(*id).is_some()) {
        depth = depth.max(depth_of(state, source)?);
    }
    Ok(depth + 1)
}
