//! `get`: payloads of nodes.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use clap::Args;
use drumlin::{AsOf, Content, Store, Tables, TypeName};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::Output;
use crate::payload_text;
use crate::place::Place;
use crate::rows::{self, Form};
use crate::scope::is_pattern;

/// Print the payload of a node, or the row of a table with a key
///
/// A payload is JSON, or bytes as they are. With KEY, the row with this key is printed as JSON: one value for each column
/// of the key, in its order.
///
/// For a pattern, the payloads of all matching nodes are printed, one per line: the path, a tab, and the payload as
/// JSON or, if it is bytes, as b"..." with escapes. Nodes without a payload are skipped.
#[derive(Args)]
#[command(after_help = "\
Example:
  drumlin get market.drumlin config/feeds/a
  drumlin get market.drumlin 'config/**'
  drumlin get shop.drumlin users 4711")]
pub struct Get {
    #[command(flatten)]
    place: Place,
    /// The node, or a pattern with *, ? and **
    path: String,
    /// Values of the key's columns, of a table with a key; bytes as x'00ff'
    #[arg(allow_negative_numbers = true)]
    key: Vec<String>,
    /// How a row is printed
    #[arg(long, short, value_enum, default_value_t = Form::Json, requires = "key")]
    format: Form,
}

impl Get {
    /// Prints the payload, or all payloads in path order.
    pub fn run(self, out: &mut Output) -> Outcome {
        let store = self.place.read()?;
        if !self.key.is_empty() {
            return self.row(&store, out);
        }
        if is_pattern(&self.path) {
            for (path, payload) in store.tree().get_many(&self.path)? {
                writeln!(out, "{path}\t{}", payload_text::line(&payload))?;
            }
            return Ok(());
        }
        match store.tree().get(&self.path)? {
            Some(payload) => match payload.content() {
                Content::Json(value) => Ok(out.json(&value.to_json())?),
                Content::Bytes(bytes) => Ok(out.write_all(bytes)?),
            },
            None if store.table(&self.path).exists()? => Err(Failure::Error(format!(
                "the node at '{0}' has no payload; it is a table: its rows are printed by 'drumlin cat {1} {0}', a row by \
                 its key by 'drumlin get {1} {0} KEY'",
                self.path,
                self.place.uri()
            ))),
            None if store.tree().exists(&self.path)? => {
                Err(Failure::Error(format!("the node at '{}' has no payload", self.path)))
            }
            None => Err(Failure::Error(format!("no node at '{}'", self.path))),
        }
    }

    /// Prints the row of a key.
    fn row(&self, store: &Store, out: &mut Output) -> Outcome {
        let view = store.table(&self.path).view(&AsOf::Newest)?;
        let columns = view.key_schema().fields();
        if columns.len() != self.key.len() {
            let names: Vec<&str> = columns.iter().map(|field| field.name().as_str()).collect();
            return Err(Failure::Usage(format!(
                "the key of '{}' has {} columns ({}), not {}",
                self.path,
                columns.len(),
                names.join(", "),
                self.key.len()
            )));
        }
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        let mut values = Vec::new();
        for (field, given) in columns.iter().zip(&self.key) {
            let text: ArrayRef = Arc::new(StringArray::from(vec![given.as_str()]));
            let refused = || {
                let (name, wanted) = (field.name(), TypeName(field.data_type()));
                Failure::Usage(format!("column '{name}' of the key: '{given}' is not a valid {wanted}"))
            };
            let value = match (given.strip_prefix("x'").and_then(|hex| hex.strip_suffix('\'')), field.data_type()) {
                (
                    Some(hex),
                    DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_),
                ) => {
                    let bytes = bytes_of(hex).ok_or_else(refused)?;
                    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&bytes]));
                    cast_with_options(&bytes, field.data_type(), &exact).map_err(|_| refused())?
                }
                (_, wanted) => cast_with_options(&text, wanted, &exact).map_err(|_| refused())?,
            };
            values.push(value);
        }
        let keys = RecordBatch::try_new(view.key_schema().clone(), values)?;
        let found = view.get_many(&keys, None, &interrupt::listen())?;
        let rows = found.rows;
        if !found.found.value(0) {
            return Err(Failure::Error(format!("'{}' has no row with the key {}", self.path, self.key.join(", "))));
        }
        rows::print(self.format, &rows.schema(), std::iter::once(Ok(rows)), (u64::MAX, ""), out)
    }
}

/// The bytes of pairs of hexadecimal digits.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}
