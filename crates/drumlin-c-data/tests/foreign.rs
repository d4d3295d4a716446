//! Arrays made by another library, through every entry point: slices arrive as the rows they mean; what breaks the
//! interface's rules is an error, never a panic.

#[path = "../../drumlin/tests/it/arrays.rs"]
mod arrays;
#[path = "../../drumlin/tests/it/seeds.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod seeds;

use std::ptr::null_mut;
use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::Buffer;
use arrow::datatypes::*;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use drumlin::arrays::checked_array;
use drumlin::{Error, ErrorKind, Frame, Options, Result, Store, TableOptions, Tables, WriteOptions};
use fastrand::Rng;

use arrays::{any_type, array, shown};

/// Rows of `data`, sliced as by other libraries: buffers and children stay whole, and the offset says where the rows
/// begin.
fn sliced(data: &ArrayData, from: usize, rows: usize) -> ArrayData {
    let nulls = data.nulls().map(|nulls| nulls.slice(from, rows));
    let builder = data.clone().into_builder().offset(data.offset() + from).len(rows).nulls(nulls);
    // SAFETY: a part of the existing array.
    unsafe { builder.build_unchecked() }
}

/// Exported through the interface and imported again.
fn imported(data: &ArrayData) -> Result<ArrayData> {
    // SAFETY: exported by Arrow itself.
    unsafe { drumlin_c_data::array(FFI_ArrowArray::new(data), data.data_type()) }
}

/// A struct of columns, none of them checked.
fn rows_of(columns: Vec<(&str, ArrayData)>) -> (SchemaRef, ArrayData) {
    let rows = columns[0].1.len();
    let field = |(name, data): &(&str, ArrayData)| Field::new(*name, data.data_type().clone(), true);
    let fields: Fields = columns.iter().map(field).collect();
    let children = columns.into_iter().map(|(_, data)| data).collect();
    let builder = ArrayDataBuilder::new(DataType::Struct(fields.clone())).len(rows).child_data(children);
    // SAFETY: only the tested code reads it.
    (Arc::new(Schema::new(fields)), unsafe { builder.build_unchecked() })
}

fn open() -> Store {
    Store::open_with("memory://", Options { cpu_threads: 1, ..Options::default() }).unwrap()
}

#[test]
fn slices_of_every_type_are_the_rows_that_they_mean() {
    seeds::each(0..400, 40, |seed| {
        let mut rng = Rng::with_seed(seed);
        let depth = rng.usize(..4);
        let data_type = any_type(&mut rng, depth);
        let whole = array(&mut rng, &data_type, 20, true);
        let (first, second) = (rng.usize(..8), rng.usize(..8));
        // A slice of a slice, within a slice of the whole struct.
        let (from, rows) = (first + second, rng.usize(..5));
        let data = sliced(&sliced(&whole.to_data(), first, 20 - first), second, 20 - from);
        let taken = checked_array(&imported(&sliced(&data, 0, rows)).unwrap()).unwrap();
        taken.to_data().validate_full().unwrap();
        let expected: Vec<String> = (from..from + rows).map(|row| shown(&whole, row)).collect();
        let got: Vec<String> = (0..taken.len()).map(|row| shown(&taken, row)).collect();
        assert_eq!(got, expected, "seed {seed}: {data_type} from {first} and {second}");
        // As rows, whose struct is sliced once more.
        let ids = Int64Array::from_iter_values(0..(20 - from) as i64).into_data();
        let (schema, all) = rows_of(vec![("id", ids), ("c", data)]);
        let begin = rng.usize(..=(20 - from - rows));
        let part = imported(&sliced(&all, begin, rows)).unwrap();
        let store = open();
        let frame = Frame::from_foreign(schema, [Ok(part)].into_iter());
        if let Err(e) = store.write("t", frame, &Default::default()) {
            assert!(refused(&e), "seed {seed}: {e}");
            return;
        }
        let expected: Vec<String> = (from + begin..from + begin + rows).map(|row| shown(&whole, row)).collect();
        let batches = store.table("t").collect(&Default::default()).unwrap();
        let show =
            |batch: &RecordBatch| (0..batch.num_rows()).map(|row| shown(batch.column(1), row)).collect::<Vec<_>>();
        assert_eq!(batches.iter().flat_map(show).collect::<Vec<_>>(), expected, "seed {seed}: {data_type}");
    });
}

fn refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::SchemaMismatch)
}

/// Changes bytes of a buffer of an array, at any depth. Offsets stay within what they point into, because it cannot be
/// checked whether the last one is true.
fn spoil_values(rng: &mut Rng, data: &ArrayData) -> ArrayData {
    let mut children = data.child_data().to_vec();
    if !children.is_empty() && rng.bool() {
        let at = rng.usize(..children.len());
        children[at] = spoil_values(rng, &children[at]);
    }
    let mut buffers = data.buffers().to_vec();
    if !buffers.is_empty() {
        let limit = match data.data_type() {
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => buffers[1].len(),
            _ => 200,
        };
        let width = match data.data_type() {
            DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_) | DataType::LargeListView(_) => 8,
            DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..) | DataType::ListView(_) => 4,
            _ => 1,
        };
        let at = rng.usize(..buffers.len());
        let mut bytes = buffers[at].to_vec();
        for _ in 0..rng.usize(1..4) {
            if bytes.len() < width {
                break;
            }
            let slot = rng.usize(..=bytes.len() / width - 1) * width;
            match width {
                1 => bytes[slot] = rng.u8(..),
                _ if at > 0 && limit != 200 => bytes[slot] = rng.u8(..),
                _ => {
                    let value = rng.i64(-3..=limit as i64);
                    bytes[slot..slot + width].copy_from_slice(&value.to_le_bytes()[..width]);
                }
            }
        }
        buffers[at] = Buffer::from_vec(bytes);
    }
    let builder = data.clone().into_builder().buffers(buffers).child_data(children);
    // SAFETY: only the tested code reads it.
    unsafe { builder.build_unchecked() }
}

/// All structs of an array.
fn structs(array: &mut FFI_ArrowArray, found: &mut Vec<*mut FFI_ArrowArray>) {
    found.push(array);
    for at in 0..array.n_children as usize {
        // SAFETY: exported by Arrow itself.
        structs(unsafe { &mut **array.children.add(at) }, found);
    }
    // SAFETY: exported by Arrow itself.
    if let Some(values) = unsafe { array.dictionary.as_mut() } {
        structs(values, found);
    }
}

/// Changes the structs of the interface. No length is made larger than it is, unless absurdly so.
fn spoil_structs(rng: &mut Rng, array: &mut FFI_ArrowArray) {
    let mut found = Vec::new();
    structs(array, &mut found);
    let at = rng.usize(..found.len());
    // SAFETY: one of the structs of `array`, which is not accessed in between.
    let array = unsafe { &mut *found[at] };
    let absurd = [-1, i64::MIN, i64::MAX, i64::MAX - 5, 1 << 62, 1 << 58];
    match rng.u8(..10) {
        0 => array.length = rng.i64(0..=array.length),
        1 => array.length = absurd[rng.usize(..absurd.len())],
        2 => array.offset = absurd[rng.usize(..absurd.len())],
        3 => {
            let shift = rng.i64(0..=array.length);
            array.offset += shift;
            array.length -= shift;
        }
        4 => array.null_count = [-1, -2, 0, 1, array.length, array.length + 1][rng.usize(..6)],
        5 => array.n_buffers = rng.i64(-1..=array.n_buffers),
        6 => array.buffers = null_mut(),
        7 if array.n_buffers > 0 => {
            // SAFETY: one of the buffers; the code that releases them has its own pointers.
            unsafe { *array.buffers.add(rng.usize(..array.n_buffers as usize)) = std::ptr::null() };
        }
        8 => array.n_children = rng.i64(-1..=array.n_children),
        _ => match rng.bool() {
            true => array.children = null_mut(),
            false => array.dictionary = null_mut(),
        },
    }
}

/// Imports rows through every entry point, and reads what was accepted.
fn all_doors(rng: &mut Rng, schema: &SchemaRef, make: impl Fn() -> Result<ArrayData>) -> Result<()> {
    let store = open();
    let frame = || Frame::from_foreign(schema.clone(), std::iter::once_with(&make));
    let sort = WriteOptions { sort: Some(vec!["id".into()]), ..WriteOptions::default() };
    match rng.u8(..5) {
        0 => drop(store.write("t", frame(), &Default::default())?),
        1 => drop(store.write("t", frame(), &sort)?),
        2 => {
            store.table("t").create(schema.clone(), Default::default())?;
            store.append("t", frame(), &Default::default())?;
        }
        3 => {
            store.table("t").create(schema.clone(), TableOptions { sort: vec!["id".into()], ..Default::default() })?;
            store.replace("t", frame(), &Default::default())?;
        }
        _ => {
            store.table("t").create(schema.clone(), TableOptions { key: vec!["id".into()], ..Default::default() })?;
            store.table("t").upsert(frame(), &Default::default())?;
        }
    }
    for batch in store.table("t").collect(&Default::default()).unwrap() {
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
    Ok(())
}

// faults: hostile arrays x write, upsert
#[test]
fn malformed_arrays_are_refused_by_every_door() {
    let (mut taken, mut errors) = (0, 0);
    seeds::each(0..500, 50, |seed| {
        let mut rng = Rng::with_seed(seed);
        let depth = rng.usize(..3);
        let data_type = any_type(&mut rng, depth);
        let sound = array(&mut rng, &data_type, 12, true).to_data();
        let ids = Int64Array::from_iter_values(0..12).into_data();
        let spoil = rng.bool();
        let column = if spoil { spoil_values(&mut rng, &sound) } else { sound };
        let (schema, rows) = rows_of(vec![("id", ids), ("c", column.clone())]);
        let spoiler = rng.fork();
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let make = || {
                let mut exported = FFI_ArrowArray::new(&rows);
                let mut spoiler = spoiler.clone();
                if !spoil || spoiler.u8(..4) == 0 {
                    spoil_structs(&mut spoiler, &mut exported);
                }
                // SAFETY: malformed, but not longer than it is.
                unsafe { drumlin_c_data::array(exported, rows.data_type()) }
            };
            if spoil {
                // As look-up keys and other single columns.
                let alone = imported(&column).and_then(|data| checked_array(&data));
                if let Ok(array) = alone {
                    array.to_data().validate_full().unwrap();
                }
            }
            all_doors(&mut rng, &schema, make)
        }));
        match answer.unwrap_or_else(|_| panic!("seed {seed}: {data_type}")) {
            Ok(()) => taken += 1,
            Err(e) => {
                assert!(refused(&e), "seed {seed}: {data_type}: {e}");
                errors += 1;
            }
        }
    });
    assert!(seeds::given() || (taken > 20 && errors > 100), "{taken} taken, {errors} refused");
}

/// Text in three rows, of which the middle one is damaged.
fn hostile_text(how: &str) -> ArrayData {
    let (mut offsets, mut bytes) = (vec![0_i32, 3, 6, 9], b"abcdefghi".to_vec());
    match how {
        "an offset far away" => offsets[2] = 1 << 30,
        "offsets that run back" => offsets[2] = 1,
        "an offset below zero" => offsets[1] = -3,
        _ => bytes[3..6].copy_from_slice(&[0xff, 0xfe, 0xfd]),
    }
    let builder = ArrayDataBuilder::new(DataType::Utf8).len(3).add_buffer(Buffer::from_vec(offsets));
    // SAFETY: only the tested code reads it.
    unsafe { builder.add_buffer(Buffer::from_vec(bytes)).build_unchecked() }
}

// faults: hostile arrays x write
#[test]
fn text_is_checked_before_anything_measures_or_sorts_it() {
    for how in ["an offset far away", "offsets that run back", "an offset below zero", "not UTF-8"] {
        for kind in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let schema =
                Arc::new(Schema::new(vec![Field::new("k", kind, true), Field::new("n", DataType::Int64, true)]));
            let (came, rows) = rows_of(vec![("k", hostile_text(how)), ("n", Int64Array::from(vec![1, 2, 3]).into())]);
            let frame = || Frame::from_foreign(came.clone(), std::iter::once(imported(&rows)));
            let store = open();
            store.table("plain").create(schema.clone(), Default::default()).unwrap();
            let sorted = TableOptions { sort: vec!["k".into()], ..Default::default() };
            store.table("sorted").create(schema.clone(), sorted).unwrap();
            let keyed = TableOptions { key: vec!["k".into()], ..Default::default() };
            store.table("keyed").create(schema.clone(), keyed).unwrap();
            let note = WriteOptions { metadata: Some("1".into()), ..Default::default() };
            let answers = [
                store.write("new", frame(), &Default::default()).err(),
                store.append("plain", frame(), &Default::default()).err(),
                store.append("sorted", frame(), &Default::default()).err(),
                store.replace("sorted", frame(), &Default::default()).err(),
                store.table("keyed").upsert(frame(), &Default::default()).err(),
                store.table("keyed").upsert(frame(), &note).err(),
                store.table("keyed").insert(frame(), &Default::default()).err(),
                store.table("keyed").delete_keys(frame(), &Default::default()).err(),
                store.append("keyed", frame(), &Default::default()).err(),
                checked_array(&hostile_text(how)).err(),
            ];
            for (at, answer) in answers.into_iter().enumerate() {
                let error = answer.unwrap_or_else(|| panic!("{how}: door {at} took it"));
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{how}: {error}");
                assert!(error.message().contains("malformed"), "{error}");
            }
        }
    }
}

#[test]
fn only_the_rows_of_a_slice_are_checked() {
    let text = sliced(&hostile_text("not UTF-8"), 2, 1);
    let taken = checked_array(&imported(&text).unwrap()).unwrap();
    assert_eq!(taken.as_ref(), &StringArray::from(vec!["ghi"]) as &dyn Array);
}

#[test]
fn schemas_that_are_no_text_or_too_deep_are_refused() {
    let import = |schema: &FFI_ArrowSchema| {
        // SAFETY: made below.
        unsafe { drumlin_c_data::field(schema) }
    };
    let plain = || FFI_ArrowSchema::try_from(&Field::new("c", DataType::Int32, true)).unwrap();
    assert_eq!(import(&plain()).unwrap(), Field::new("c", DataType::Int32, true));
    // A key and a value, the value not UTF-8.
    let metadata = |key: &[u8], value: &[u8]| {
        let mut bytes = 1_i32.to_ne_bytes().to_vec();
        for part in [key, value] {
            bytes.extend((part.len() as i32).to_ne_bytes());
            bytes.extend(part);
        }
        bytes
    };
    for (bytes, words) in [
        (metadata(b"pickle", b"\x80\x04\xff"), "the value of 'pickle'"),
        (metadata(b"\xff", b"x"), "the key"),
        ((-1_i32).to_ne_bytes().to_vec(), "malformed"),
    ] {
        let mut schema = plain();
        schema.metadata = bytes.as_ptr().cast();
        let error = import(&schema).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(words) && error.message().contains("'c'"), "{error}");
    }
    let with_nul = metadata(b"k\0", b"v\0");
    let mut schema = plain();
    schema.metadata = with_nul.as_ptr().cast();
    assert_eq!(import(&schema).unwrap().metadata()["k\0"], "v\0");

    let mut schema = plain();
    let format = schema.format;
    for format in [c"w:-4", c"+w:-4"] {
        schema.format = format.as_ptr();
        assert!(import(&schema).unwrap_err().message().contains("below zero"));
    }
    // SAFETY: exported by Arrow itself.
    let error = unsafe {
        let numbers = FFI_ArrowArray::new(&Int32Array::from(vec![1]).into());
        drumlin_c_data::array(numbers, &DataType::FixedSizeBinary(-4))
    };
    assert!(error.unwrap_err().message().contains("below zero"));
    let mut values = plain();
    schema.dictionary = &raw mut values;
    for format in [c"w:4", c"u", c"f", c"b", c"+s"] {
        schema.format = format.as_ptr();
        assert!(import(&schema).unwrap_err().message().contains("not integers"));
    }
    schema.dictionary = std::ptr::null_mut();
    for format in [c"+l", c"+m", c"+w:2", c"no such type", c"d:x,y"] {
        schema.format = format.as_ptr();
        assert!(refused(&import(&schema).unwrap_err()));
    }
    schema.format = std::ptr::null();
    assert!(refused(&import(&schema).unwrap_err()));
    // Its own format again, so that it can be released.
    schema.format = format;
    schema.n_children = -1;
    assert!(refused(&import(&schema).unwrap_err()));
    schema.n_children = 0;
    let list = |below: DataType| DataType::List(Arc::new(Field::new("item", below, true)));
    let deep = (0..200).fold(DataType::Int8, |below, _| list(below));
    let schema = FFI_ArrowSchema::try_from(&Field::new("c", deep, true)).unwrap();
    assert!(import(&schema).unwrap_err().message().contains("nested more than"));
}

/// Some libraries mark every field as nullable. Rows with a key that is null are refused; others are stored.
#[test]
fn keys_of_maps_are_never_null_whatever_their_field_says() {
    let map = |nullable: bool| {
        let parts = vec![Field::new("key", DataType::Int32, nullable), Field::new("value", DataType::Int32, true)];
        let entries = Field::new("entries", DataType::Struct(parts.into()), nullable);
        let inner = DataType::Map(Arc::new(entries), false);
        DataType::List(Arc::new(Field::new("item", inner, true)))
    };
    let schema = FFI_ArrowSchema::try_from(&Field::new("c", map(true), true)).unwrap();
    // SAFETY: exported by Arrow itself.
    let field = unsafe { drumlin_c_data::field(&schema) }.unwrap();
    assert_eq!(field, Field::new("c", map(false), true));
}

#[test]
fn a_stream_is_drawn_once_and_tells_what_it_failed_at() {
    let rows = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    let schema = rows.schema();
    let batches = vec![Ok(rows.slice(1, 2)), Err(arrow::error::ArrowError::ComputeError("what failed".into()))];
    let reader = RecordBatchIterator::new(batches, schema.clone());
    let mut exported = FFI_ArrowArrayStream::new(Box::new(reader));
    // SAFETY: exported by Arrow itself.
    let mut stream = unsafe { drumlin_c_data::Stream::new(FFI_ArrowArrayStream::from_raw(&mut exported)) }.unwrap();
    assert_eq!(drumlin_c_data::schema_of(stream.field()).unwrap(), schema);
    assert_eq!(stream.next().unwrap().unwrap().len(), 2);
    assert!(stream.next().unwrap().unwrap_err().message().contains("what failed"));
    assert!(stream.next().is_none());
    // SAFETY: as above.
    let again = unsafe { drumlin_c_data::Stream::new(exported) };
    assert!(again.err().unwrap().message().contains("read once"));
}
