//! Rows as the page shows them: numbers that a browser holds exactly stay numbers, everything else becomes text, and long text is cut.

use std::fmt::{self, Write};
use std::sync::Arc;

use drumlin::arrow::array::{Array, ArrayRef, RecordBatch, StringBuilder};
use drumlin::arrow::compute::cast;
use drumlin::arrow::datatypes::{DataType, Field, Schema};
use drumlin::arrow::ipc::writer::StreamWriter;
use drumlin::arrow::temporal_conversions::timestamp_us_to_datetime;
use drumlin::arrow::util::display::{ArrayFormatter, FormatOptions};
use drumlin::{Error, Result, Retention, Timestamp, TypeName};
use serde_json::{Value, json};

/// The bytes of a value that a row shows.
const VALUE_BYTES_MAX: usize = 512;
/// The bytes of a value that is asked for alone.
pub const WHOLE_BYTES_MAX: usize = 4 << 20;

/// How the page treats a type: `number` and `time` can be drawn, `number` stands at the right.
pub fn kind(data_type: &DataType) -> &'static str {
    use DataType::*;
    match data_type {
        data_type if data_type.is_numeric() => "number",
        Date32 | Date64 | Timestamp(..) => "time",
        Boolean => "boolean",
        Utf8 | LargeUtf8 | Utf8View => "text",
        Dictionary(_, values) => kind(values),
        _ => "other",
    }
}

/// Whether a browser holds all values of the type as numbers.
fn stays(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Boolean | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Float32 | Float64)
}

/// Rows as they are shown: as an Arrow IPC stream, the fields of which tell their types.
pub fn stream(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let fields = schema.fields().iter().map(|field| {
        let of = field.data_type();
        let shown = if stays(of) { of.clone() } else { DataType::Utf8 };
        let told = [("type".to_owned(), TypeName(of).to_string()), ("kind".to_owned(), kind(of).to_owned())];
        Field::new(field.name(), shown, true).with_metadata(told.into())
    });
    let shown = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut writer = StreamWriter::try_new(Vec::new(), &shown).map_err(failed)?;
    for batch in batches {
        let columns = batch.columns().iter().map(display).collect::<Result<Vec<_>>>()?;
        writer.write(&RecordBatch::try_new(shown.clone(), columns).map_err(failed)?).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// A time in RFC 3339, UTC, to the microsecond.
pub fn time(time: Timestamp) -> Value {
    match timestamp_us_to_datetime(time.0) {
        Some(datetime) => json!(datetime.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        None => json!(format!("{} us", time.0)),
    }
}

/// What a retention keeps, in words.
pub fn retention(retention: Retention) -> String {
    match retention {
        Retention::KeepAll => "all versions".into(),
        Retention::KeepLast(1) => "the last version".into(),
        Retention::KeepLast(n) => format!("the last {n} versions"),
        Retention::KeepMicros(micros) => {
            let units = [(86_400_000_000, "days"), (3_600_000_000, "hours"), (60_000_000, "minutes")];
            let whole = units.into_iter().find(|(unit, _)| micros >= *unit && micros % unit == 0);
            let (unit, name) = whole.unwrap_or((1_000_000, "seconds"));
            format!("versions of the last {} {name}", micros / unit)
        }
    }
}

/// What cannot be shown.
fn failed(e: drumlin::arrow::error::ArrowError) -> Error {
    Error::invalid(format!("these rows cannot be shown: {e}"))
}

/// A column as it is shown.
fn display(column: &ArrayRef) -> Result<ArrayRef> {
    if stays(column.data_type()) {
        return Ok(column.clone());
    }
    // What a dictionary refers to is looked at through it.
    let options = FormatOptions::default().with_display_error(true);
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).map_err(failed)?;
    let mut texts = StringBuilder::new();
    for row in 0..column.len() {
        match column.is_null(row) {
            true => texts.append_null(),
            false => texts.append_value(bounded(&formatter, row, VALUE_BYTES_MAX)),
        }
    }
    Ok(Arc::new(texts.finish()))
}

/// A value as text, whole unless it is very long.
pub fn display_text(column: &ArrayRef, row: usize) -> Result<Option<String>> {
    if column.is_null(row) {
        return Ok(None);
    }
    let column = match column.data_type() {
        DataType::Dictionary(_, values) => &cast(column, values).map_err(failed)?,
        _ => column,
    };
    let options = FormatOptions::default().with_display_error(true);
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).map_err(failed)?;
    Ok(Some(bounded(&formatter, row, WHOLE_BYTES_MAX)))
}

fn bounded(formatter: &ArrayFormatter<'_>, row: usize, bytes_max: usize) -> String {
    let mut text = Bounded { text: String::new(), bytes_max, more: 0 };
    // It never fails: what is too much is counted.
    let _ = write!(text, "{}", formatter.value(row));
    if text.more > 0 {
        let _ = write!(text.text, "… ({} bytes more)", text.more);
    }
    text.text
}

/// Text that takes only so much and counts the rest.
struct Bounded {
    text: String,
    bytes_max: usize,
    more: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.bytes_max.saturating_sub(self.text.len());
        let end = if self.more > 0 {
            0
        } else {
            (0..=room.min(part.len())).rev().find(|at| part.is_char_boundary(*at)).unwrap_or(0)
        };
        self.text.push_str(&part[..end]);
        self.more += part.len() - end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use drumlin::arrow::array::{Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn texts(column: impl Array + 'static) -> Vec<Option<String>> {
        let shown = display(&(Arc::new(column) as ArrayRef)).unwrap();
        let shown = shown.as_any().downcast_ref::<StringArray>().unwrap().clone();
        shown.iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn values_are_exact_or_say_that_they_are_cut() {
        assert_eq!(texts(Int64Array::from(vec![Some(i64::MAX), None])), [Some("9223372036854775807".into()), None]);
        let decimal = Decimal128Array::from(vec![12345]).with_precision_and_scale(38, 2).unwrap();
        assert_eq!(texts(decimal), [Some("123.45".into())]);
        let times = TimestampMicrosecondArray::from(vec![1_700_000_000_123_456]).with_timezone("+00:00");
        assert_eq!(texts(times), [Some("2023-11-14T22:13:20.123456Z".into())]);
        let long = "é".repeat(500_000);
        let shown = texts(StringArray::from(vec![long.as_str(), "<script>alert(1)</script>"]));
        assert_eq!(shown[0].as_deref().unwrap(), format!("{}… ({} bytes more)", "é".repeat(256), 1_000_000 - 512));
        assert_eq!(shown[1].as_deref(), Some("<script>alert(1)</script>"));
        let whole = display_text(&(Arc::new(StringArray::from(vec![long.as_str()])) as ArrayRef), 0).unwrap();
        assert_eq!(whole.unwrap(), long);
    }
}
