//! Rows and keys of keyed tables as passed from Python, and results of look-ups by key.
//!
//! Typed data keep their types. Python values have none: they get the types of the table's columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, NullArray, RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, FieldRef, Schema as ArrowSchema, SchemaRef};
use arrow::ffi::FFI_ArrowArray;
use arrow::util::display::array_value_to_string;
use drumlin::arrays::{find_column, forgotten, join};
use drumlin::embedding::caught;
use drumlin::{Cancel, Error, Frame, LookupOptions, Result, TableView, Task, TypeName, WriteOptions};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PyTuple};

use crate::call::{detached, long, with_progress};
use crate::errors::raise;
use crate::foreign::{Pieces, Rows as Foreign};
use crate::input::Input;
use crate::python_value::to_python;
use crate::result::Batches;
use crate::schema::capsule;
use crate::value::{shown, to_array};

/// Up to this many rows or keys in memory are processed faster than a thread is started for an interruptible call.
const FEW: usize = 1024;

fn refuse<T>(why: String) -> PyResult<T> {
    Err(raise(Error::invalid(why)))
}

/// A column as passed from Python.
pub enum Column<'py> {
    Values(Vec<Bound<'py, PyAny>>),
    /// With the field that it came with.
    Array(Arc<Field>, ArrayRef),
}

impl<'py> Column<'py> {
    /// A list of values, or an Arrow array.
    fn of(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        if let Ok(values) = object.cast::<PyList>() {
            return Ok(Self::Values(values.iter().collect()));
        }
        let Pieces(field, pieces) = object.extract()?;
        let joined = || join(&pieces.into_iter().collect::<Result<Vec<ArrayRef>>>()?);
        caught(joined).map(|array| Self::Array(field, array)).map_err(|error| raise(error.context(what)))
    }

    fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Array(_, array) => array.len(),
        }
    }

    /// The column called `name`; values without types get the one that they have in Arrow.
    fn typed(self, name: &str) -> PyResult<Self> {
        match self {
            Self::Values(values) if values.iter().any(|value| !value.is_none()) => {
                let py = values[0].py();
                let typed = py.import("drumlin._arguments.rows")?.getattr("typed")?;
                Self::of(&typed.call1((values, name))?, &format!("column '{name}'"))
            }
            other => Ok(other),
        }
    }

    /// The column called `name`; values without types get type `wanted`.
    fn into_array(self, wanted: &DataType, name: &str) -> PyResult<(FieldRef, ArrayRef)> {
        let (metadata, array) = match self {
            Self::Values(values) => (HashMap::new(), to_array(&values, wanted, &format!("column '{name}'"))?),
            Self::Array(field, array) => (field.metadata().clone(), array),
        };
        let field = Field::new(name, array.data_type().clone(), true).with_metadata(metadata);
        Ok((Arc::new(field), array))
    }
}

/// Defaults by column, each as an array of one row in the type that `schema` has for the column. Columns that it
/// lacks are reported by the code that takes the values.
pub fn defaults_of(values: &Bound<'_, PyDict>, schema: &ArrowSchema) -> PyResult<Vec<(String, ArrayRef)>> {
    let array = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let same = |field: &&FieldRef| field.name().to_lowercase() == name.to_lowercase();
        let field =
            schema.field_with_name(&name).ok().or_else(|| schema.fields().iter().find(same).map(|field| &**field));
        let array = match field.map(Field::data_type) {
            Some(DataType::Null) | None => Arc::new(NullArray::new(1)) as ArrayRef,
            Some(wanted) => to_array(&[value], wanted, &format!("the default of column '{name}'"))?,
        };
        Ok((name, array))
    };
    values.iter().map(array).collect()
}

/// Columns by name.
pub type Columns<'py> = Vec<(String, Column<'py>)>;

fn columns_of<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Columns<'py>> {
    let column = |(name, column): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        let name: String = name.extract()?;
        let column = Column::of(&column, &format!("column '{name}'"))?;
        Ok((name, column))
    };
    dict.iter().map(column).collect()
}

/// Columns as a batch, with the types of those of `schema`. Columns that `schema` lacks are reported by the code that
/// takes the batch; if they are `new`, values get the type that they have in Arrow, as they do if a column has none yet.
fn batch_of(columns: Columns<'_>, schema: &ArrowSchema, new: bool) -> PyResult<RecordBatch> {
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if let [(first, _), ..] = columns.as_slice()
        && let Some((name, other)) = columns.iter().find(|(_, column)| column.len() != rows)
    {
        return refuse(format!(
            "the columns differ in length; expected the same number of values, but '{first}' has {rows} and '{name}' \
             has {}",
            other.len()
        ));
    }
    let array = |(name, column): (String, Column<'_>)| -> PyResult<(FieldRef, ArrayRef)> {
        // Nothing is said of values without types, such as that they are of an Enum.
        let wanted = schema.field_with_name(&name).map(|field| forgotten(field).data_type().clone());
        let untyped = wanted.as_ref().map_or(new, |wanted| *wanted == DataType::Null);
        let column = if untyped { column.typed(&name)? } else { column };
        match wanted {
            Ok(wanted) => column.into_array(&wanted, &name),
            Err(_) if new => column.into_array(&DataType::Null, &name),
            Err(_) => {
                Ok((Arc::new(Field::new(name, DataType::Null, true)), Arc::new(NullArray::new(rows)) as ArrayRef))
            }
        }
    };
    let (fields, arrays): (Vec<_>, Vec<_>) =
        columns.into_iter().map(array).collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
    batch(fields, arrays, rows).map_err(raise)
}

fn batch(fields: Vec<FieldRef>, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), arrays, &options)?)
}

/// Rows: anything that exports an Arrow stream or array, a reading of a store; or a dict of columns, each a list of
/// values or an Arrow array.
pub enum Rows<'py> {
    Frame(Input),
    Columns(Columns<'py>),
}

impl<'py> FromPyObject<'_, 'py> for Rows<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyDict>() {
            Ok(dict) => Ok(Self::Columns(columns_of(&dict.to_owned())?)),
            Err(_) => Ok(Self::Frame(object.extract()?)),
        }
    }
}

impl Rows<'_> {
    /// The rows in the form in which they are written to a table with the schema that `schema` returns, which gets columns
    /// that it lacks if `new` says so.
    pub fn given(self, new: bool, schema: impl FnOnce() -> PyResult<SchemaRef>) -> PyResult<Given> {
        match self {
            Self::Frame(input) => Ok(Given::Input(input, None)),
            // A list without rows names no columns.
            Self::Columns(columns) if columns.is_empty() => Ok(Given::Batch(RecordBatch::new_empty(schema()?))),
            Self::Columns(columns) => Ok(Given::Batch(batch_of(columns, &*schema()?, new)?)),
        }
    }
}

/// Keys: anything that rows can be, with the key columns, perhaps among others; a tuple of one Arrow array, for a key of
/// one column; or a list of keys, each a value, a tuple of values or a dict.
pub enum Keys<'py> {
    Rows(Rows<'py>),
    Array(Column<'py>),
    List(Vec<Bound<'py, PyAny>>),
}

impl<'py> FromPyObject<'_, 'py> for Keys<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(list) = object.cast::<PyList>() {
            return Ok(Self::List(list.iter().collect()));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Ok(Self::Array(Column::of(&tuple.get_item(0)?, "keys")?));
        }
        object.extract().map(Self::Rows)
    }
}

impl<'py> Keys<'py> {
    /// One key.
    pub fn one(key: Bound<'py, PyAny>) -> Self {
        Self::List(vec![key])
    }

    /// The keys in the form in which they are looked up in, or deleted from, a table with the key columns that `schema`
    /// returns.
    pub fn given(self, schema: impl FnOnce() -> PyResult<SchemaRef>) -> PyResult<Given> {
        let schema = schema()?;
        let columns = match self {
            Self::Rows(Rows::Frame(input)) => return Ok(Given::Input(input, Some(schema))),
            Self::Rows(Rows::Columns(columns)) => {
                columns.into_iter().filter(|(name, _)| schema.index_of(name).is_ok()).collect()
            }
            Self::Array(array) => match schema.fields().iter().as_slice() {
                [only] => vec![(only.name().clone(), array)],
                _ => return refuse(format!("{}, not an array of single values", expected(&schema))),
            },
            Self::List(keys) => columns_of_keys(&keys, &schema)?,
        };
        let batch = batch_of(columns, &schema, false)?;
        fitted(&batch, &schema).map(Given::Batch).map_err(raise)
    }
}

/// What a key looks like.
fn expected(key: &ArrowSchema) -> String {
    let names: Vec<&str> = key.fields().iter().map(|field| field.name().as_str()).collect();
    match names.as_slice() {
        [only] => format!("the key is the column '{only}'; expected its value, or a dict with it"),
        _ => format!(
            "the key has the columns '{}'; expected a tuple of their values, or a dict with them",
            names.join("', '")
        ),
    }
}

/// Splits keys into columns.
fn columns_of_keys<'py>(keys: &[Bound<'py, PyAny>], schema: &ArrowSchema) -> PyResult<Columns<'py>> {
    let fields = schema.fields();
    let mut columns: Vec<Vec<Bound<'py, PyAny>>> = fields.iter().map(|_| Vec::with_capacity(keys.len())).collect();
    for key in keys {
        let wrong = || raise(Error::invalid(format!("{}, not {}", expected(schema), shown(key))));
        if let Ok(dict) = key.cast::<PyDict>() {
            for (column, field) in columns.iter_mut().zip(fields) {
                column.push(dict.get_item(field.name())?.ok_or_else(wrong)?);
            }
        } else if let Ok(tuple) = key.cast::<PyTuple>() {
            if tuple.len() != fields.len() {
                return Err(wrong());
            }
            columns.iter_mut().zip(tuple).for_each(|(column, value)| column.push(value));
        } else if let [column] = columns.as_mut_slice() {
            column.push(key.clone());
        } else {
            return Err(wrong());
        }
    }
    Ok(fields.iter().map(|field| field.name().clone()).zip(columns.into_iter().map(Column::Values)).collect())
}

/// The key columns of a batch. A number, a time or a decimal may have another type than the table's, if that can
/// represent the same value: it is only used for the look-up.
fn fitted(batch: &RecordBatch, key: &ArrowSchema) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for field in key.fields() {
        // Missing columns are reported by the core.
        if let Some((at, came)) = batch.schema_ref().column_with_name(field.name()) {
            let column = fit(batch.column(at), field.data_type());
            let column = column.map_err(|e| e.context(format!("column '{}'", field.name())))?;
            fields.push(Arc::new(came.clone().with_data_type(column.data_type().clone()).with_nullable(true)));
            arrays.push(column);
        }
    }
    self::batch(fields, arrays, batch.num_rows())
}

fn fit(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Duration, Time32, Time64, Timestamp};
    let came = column.data_type();
    let decimal = |kind: &DataType| kind.is_decimal();
    let time = |kind: &DataType| matches!(kind, Time32(_) | Time64(_));
    let of_a_kind = match (came, wanted) {
        (Date32 | Date64, Date32 | Date64) | (Duration(_), Duration(_)) => true,
        (Timestamp(_, from), Timestamp(_, to)) => from.is_some() == to.is_some(),
        _ => came.is_integer() && wanted.is_integer() || decimal(came) && decimal(wanted) || time(came) && time(wanted),
    };
    if came == wanted || !of_a_kind {
        return Ok(column.clone());
    }
    let exact = arrow::compute::CastOptions { safe: false, ..Default::default() };
    let cast = |array: &ArrayRef, to: &DataType| arrow::compute::cast_with_options(array, to, &exact);
    let other = || {
        let value = misfit(column, wanted);
        Error::invalid(format!("{value} ({}) is not a valid {}", TypeName(came), TypeName(wanted)))
    };
    let fits = cast(column, wanted).map_err(|_| other())?;
    match cast(&fits, came) {
        Ok(back) if *back == **column => Ok(fits),
        _ => Err(other()),
    }
}

/// The first value of `column` that the type `wanted` does not hold, as messages show it.
fn misfit(column: &ArrayRef, wanted: &DataType) -> String {
    let cast = |array: &ArrayRef, to: &DataType| arrow::compute::cast(array, to).ok();
    // What does not fit becomes null.
    let back = cast(column, wanted).and_then(|fits| cast(&fits, column.data_type()));
    let differs = |back: &ArrayRef, at: usize| *back.slice(at, 1) != *column.slice(at, 1);
    let at = back.and_then(|back| (0..column.len()).find(|at| differs(&back, *at)));
    let value = at.and_then(|at| array_value_to_string(column, at).ok());
    value.unwrap_or_else(|| "a value".to_owned())
}

/// Rows or keys on their way into the core.
pub enum Given {
    /// To be pulled; for keys, with the schema of the key columns.
    Input(Input, Option<SchemaRef>),
    Batch(RecordBatch),
}

impl Given {
    /// As a frame, pulled from until `cancel`.
    fn into_frame(self, cancel: Cancel) -> Frame<'static> {
        match self {
            Self::Batch(batch) => batch.into(),
            Self::Input(Input::Scan(scan), _) => Frame::new(scan.schema(), scan),
            Self::Input(Input::Foreign(foreign), Some(key)) => {
                let batches = foreign.schema.clone();
                let fitted = foreign.checked().map(move |batch| {
                    cancel.check()?;
                    fitted(&batch?, &key)
                });
                Frame::new(batches, fitted)
            }
            Self::Input(Input::Foreign(Foreign { schema, batches }), None) => {
                let batches = batches.map(move |batch| {
                    cancel.check()?;
                    batch
                });
                Frame::from_foreign(schema, batches)
            }
        }
    }

    fn is_few(&self) -> bool {
        matches!(self, Self::Batch(batch) if batch.num_rows() <= FEW)
    }

    /// All of them; of a frame, the key columns.
    pub fn into_batch(self, cancel: &Cancel) -> Result<RecordBatch> {
        let (input, key) = match self {
            Self::Batch(batch) => return Ok(batch),
            Self::Input(input, key) => (input, key.unwrap_or_else(|| Arc::new(ArrowSchema::empty()))),
        };
        let mut batches = Vec::new();
        let mut add = |batch: RecordBatch| -> Result<()> {
            cancel.check()?;
            batches.push(fitted(&batch, &key)?);
            Ok(())
        };
        let schema = match input {
            Input::Scan(mut scan) => {
                scan.try_for_each(|batch| add(batch?))?;
                scan.schema()
            }
            Input::Foreign(foreign) => {
                let schema = foreign.schema.clone();
                foreign.checked().try_for_each(|batch| add(batch?))?;
                schema
            }
        };
        match batches.first() {
            Some(first) => Ok(concat_batches(&first.schema(), &batches)?),
            None => fitted(&RecordBatch::new_empty(schema), &key),
        }
    }
}

/// Writes by key. `call` gets the rows or keys, and how to write them.
pub fn write<T: Send>(
    py: Python<'_>,
    given: Given,
    options: WriteOptions,
    progress: Option<Py<PyAny>>,
    call: impl FnOnce(Frame<'static>, &WriteOptions) -> Result<T> + Send,
) -> PyResult<T> {
    let few = progress.is_none() && given.is_few();
    let write = |task: Task| {
        let rows = given.into_frame(task.cancel.clone());
        call(rows, &WriteOptions { task, ..options })
    };
    if few { detached(py, || write(Task::default())) } else { with_progress(py, progress, write) }
}

/// Looks rows up by key. `call` gets the keys, and how to look them up.
pub fn look_up(
    py: Python<'_>,
    given: Given,
    options: LookupOptions,
    call: impl FnOnce(&RecordBatch, &LookupOptions) -> Result<drumlin::Lookup> + Send,
) -> PyResult<Lookup> {
    let cancel = options.cancel.clone();
    let few = given.is_few();
    let ask = || {
        let keys = given.into_batch(&options.cancel)?;
        let found = call(&keys, &options)?;
        Ok((keys, found))
    };
    let (keys, drumlin::Lookup { rows, found, .. }) = if few { detached(py, ask)? } else { long(py, &[cancel], ask)? };
    Ok(Lookup { keys, rows, found })
}

/// Like [`look_up`], in a view of a table.
pub fn look_up_in(py: Python<'_>, view: &TableView, keys: Keys<'_>, options: LookupOptions) -> PyResult<Lookup> {
    let given = keys.given(|| Ok(view.key_schema().clone()))?;
    look_up(py, given, options, |keys, options| view.get_many(keys, options.columns.as_deref(), &options.cancel))
}

/// Like [`look_up`], by columns that need not be a key.
pub fn look_up_by(
    py: Python<'_>,
    table: &drumlin::Table,
    on: Vec<String>,
    keys: Keys<'_>,
    options: LookupOptions,
) -> PyResult<Lookup> {
    let named = |schema: Arc<ArrowSchema>| {
        let field = |name: &String| Ok(schema.field(find_column(&schema, name)?).clone().with_nullable(true));
        let fields = on.iter().map(field).collect::<Result<Vec<Field>>>();
        Ok(Arc::new(ArrowSchema::new(fields.map_err(|e| e.context(format!("'{}'", table.path())))?)))
    };
    let schema = detached(py, || named(table.schema(&options.as_of)?))?;
    let given = keys.given(|| Ok(schema))?;
    look_up(py, given, options, |keys, options| table.get_many_by(&on, keys, options))
}

/// The result of a look-up by key.
#[pyclass(frozen, module = "drumlin._drumlin")]
pub struct Lookup {
    keys: RecordBatch,
    rows: RecordBatch,
    found: BooleanArray,
}

#[pymethods]
impl Lookup {
    /// The row of the key at position `at`, or None.
    pub fn row<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        if at >= self.found.len() {
            return Err(PyIndexError::new_err(format!("{at} is out of range; there are {} keys", self.found.len())));
        }
        if !self.found.value(at) {
            return Ok(None);
        }
        let row = PyDict::new(py);
        for (field, column) in self.rows.schema().fields().iter().zip(self.rows.columns()) {
            row.set_item(field.name(), to_python(py, field, column, at)?)?;
        }
        Ok(Some(row))
    }

    #[getter]
    fn keys(&self) -> Batches {
        self.keys.clone().into()
    }

    #[getter]
    fn rows(&self) -> Batches {
        self.rows.clone().into()
    }

    #[getter]
    fn found(&self) -> Mask {
        Mask(self.found.clone())
    }

    fn __len__(&self) -> usize {
        self.found.len()
    }
}

/// A list of bools. `pyarrow.array(...)`, `polars.Series(...)` and anything that supports `__arrow_c_array__` accept
/// it.
#[pyclass(frozen, sequence, module = "drumlin")]
pub struct Mask(BooleanArray);

#[pymethods]
impl Mask {
    /// The bools as a list.
    fn to_pylist(&self) -> Vec<bool> {
        self.0.values().iter().collect()
    }

    /// The number of true values.
    fn count(&self) -> usize {
        self.0.true_count()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, at: isize) -> PyResult<bool> {
        let len = self.0.len();
        let place = if at < 0 { at.checked_add_unsigned(len) } else { Some(at) };
        match place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < len) {
            Some(place) => Ok(self.0.value(place)),
            None => Err(PyIndexError::new_err(format!("{at} is out of range; there are {len} values"))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.to_pylist())?.try_iter()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, self.0.data_type())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&self.0.to_data()), c"arrow_array")?;
        Ok((capsule(py, self.0.data_type())?, array))
    }

    fn __repr__(&self) -> String {
        format!("Mask({} of {} true)", self.0.true_count(), self.0.len())
    }
}
