//! Arrays and schemas of another library, through Arrow's C data interface. The fuzzer's bytes decide what the structs say
//! and what the buffers hold; what cannot be checked, that memory is as long as its owner says, is always true.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayDataBuilder, BufferSpec, Int64Array, layout};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use drumlin::store::{Frame, Options, TableOptions};
use drumlin::table::checked_array;
use drumlin::{Store, Tables};

use crate::cursor::{Cursor, TYPES, data_type};

const FORMATS: [&str; 40] = [
    "n",
    "b",
    "c",
    "C",
    "s",
    "S",
    "i",
    "I",
    "l",
    "L",
    "e",
    "f",
    "g",
    "z",
    "Z",
    "u",
    "U",
    "vz",
    "vu",
    "d:19,4",
    "d:9,2,32",
    "d:40,5,256",
    "w:5",
    "w:-4",
    "tdD",
    "ttm",
    "ttn",
    "tss:",
    "tsu:Europe/Paris",
    "tDs",
    "tiM",
    "tin",
    "+l",
    "+L",
    "+w:2",
    "+s",
    "+m",
    "+vl",
    "+vL",
    "+r",
];

/// What structs point to; it lives until the input has been processed.
#[derive(Default)]
struct Memory(RefCell<Vec<Box<dyn Any>>>);

impl Memory {
    /// Keeps `value`, and returns its address.
    fn keep<T: 'static>(&self, value: T) -> *mut T {
        let mut kept = Box::new(value);
        let place: *mut T = &mut *kept;
        self.0.borrow_mut().push(kept);
        place
    }

    /// Keeps bytes at an address aligned for every machine type, or one byte after it.
    fn keep_bytes(&self, bytes: &[u8], askew: bool) -> *mut u8 {
        let shift = usize::from(askew);
        let words = self.keep(vec![0_u128; (bytes.len() + shift).div_ceil(16) + 1]);
        // SAFETY: just made, and as long as that.
        unsafe {
            let start = (*words).as_mut_ptr().cast::<u8>().add(shift);
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            start
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut FFI_ArrowSchema) {
    // SAFETY: called by the owner of the struct.
    unsafe { (*schema).release = None };
}

unsafe extern "C" fn release_array(array: *mut FFI_ArrowArray) {
    // SAFETY: called by the owner of the struct.
    unsafe { (*array).release = None };
}

fn text(cursor: &mut Cursor<'_>) -> CString {
    let length = cursor.below(20);
    let bytes: Vec<u8> = cursor.take(length).iter().copied().filter(|byte| *byte != 0).collect();
    CString::new(bytes).expect("no zeros")
}

/// Metadata as the interface writes them: a count, and that many pairs of texts, each after its length.
fn metadata(cursor: &mut Cursor<'_>) -> Vec<u8> {
    if cursor.one_in(5) {
        return [-1_i32, i32::MIN][cursor.below(2)].to_ne_bytes().to_vec();
    }
    let count = cursor.below(3);
    let mut bytes = (count as i32).to_ne_bytes().to_vec();
    for _ in 0..2 * count {
        let length = cursor.below(10);
        let part = cursor.take(length);
        if cursor.one_in(20) {
            // Nothing after it is read.
            bytes.extend((-7_i32).to_ne_bytes());
            break;
        }
        bytes.extend((part.len() as i32).to_ne_bytes());
        bytes.extend(part);
    }
    bytes
}

fn schema(cursor: &mut Cursor<'_>, memory: &Memory, depth: usize) -> FFI_ArrowSchema {
    let which = usize::from(cursor.byte());
    let format = match FORMATS.get(which % 48) {
        Some(format) => CString::new(*format).expect("no zeros"),
        None => text(cursor),
    };
    let format = memory.keep(format);
    let name = (!cursor.one_in(6)).then(|| memory.keep(text(cursor)));
    let metadata = cursor.one_in(4).then(|| memory.keep_bytes(&metadata(cursor), false));
    let wanted = match FORMATS.get(which % 48) {
        Some(&("+l" | "+L" | "+w:2" | "+m" | "+vl" | "+vL")) => 1,
        Some(&("+s" | "+r")) => 2,
        _ => 0,
    };
    let count = if cursor.one_in(8) { cursor.below(4) } else { wanted };
    let count = if depth > 70 || cursor.0.is_empty() { 0 } else { count };
    let mut children: Vec<*mut FFI_ArrowSchema> = Vec::new();
    for _ in 0..count {
        let child = schema(cursor, memory, depth + 1);
        children.push(if cursor.one_in(30) { null_mut() } else { memory.keep(child) });
    }
    let dictionary = match cursor.one_in(7) && depth < 70 {
        true => memory.keep(schema(cursor, memory, depth + 1)),
        false => null_mut(),
    };
    let mut made = FFI_ArrowSchema::empty();
    // SAFETY: kept by `memory`, in which nothing moves.
    unsafe {
        made.format = if cursor.one_in(40) { null() } else { (*format).as_ptr() };
        made.name = name.map_or(null(), |name| (*name).as_ptr());
        made.metadata = metadata.map_or(null(), |bytes| bytes.cast());
        made.flags = i64::from(cursor.byte() % 8);
        made.n_children = if cursor.one_in(40) { -1 } else { children.len() as i64 };
        made.children = if cursor.one_in(40) { null_mut() } else { (*memory.keep(children)).as_mut_ptr() };
        made.dictionary = dictionary;
        made.release = (!cursor.one_in(60)).then_some(release_schema as unsafe extern "C" fn(*mut FFI_ArrowSchema));
    }
    made
}

/// A schema; and if it is accepted, an array that claims to have it.
pub fn schemas(bytes: &[u8]) {
    let (mut cursor, memory) = (Cursor(bytes), Memory::default());
    let schema = schema(&mut cursor, &memory, 0);
    // SAFETY: what it points to is kept.
    let Ok(field) = (unsafe { drumlin_c_data::field(&schema) }) else { return };
    let _ = drumlin_c_data::schema_of(&field);
    import(&mut cursor, &memory, field.data_type());
}

/// Schemas of every format, with names, metadata and children.
pub fn schema_seeds() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(5);
    (0..48_u8).map(|format| std::iter::once(format).chain((0..80).map(|_| rng.u8(..))).collect()).collect()
}

/// An array of a type that the first byte chooses.
pub fn arrays(bytes: &[u8]) {
    let (mut cursor, memory) = (Cursor(bytes), Memory::default());
    let data_type = data_type(cursor.byte().into());
    import(&mut cursor, &memory, &data_type);
}

/// Arrays of every type with correct counts: all decisions zero except the length, and any values.
pub fn array_seeds() -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(6);
    let seed = |number: usize, random: bool| {
        let byte = |at: usize, rng: &mut fastrand::Rng| if random || at > 8 { rng.u8(..) } else { 0 };
        [number as u8, 0, 9].into_iter().chain((0..200).map(|at| byte(at, &mut rng))).collect()
    };
    let mut seed = seed;
    (0..TYPES)
        .flat_map(|number| [(number, false), (number, true)])
        .map(|(number, random)| seed(number, random))
        .collect()
}

/// The structs of an array of this type.
fn array(cursor: &mut Cursor<'_>, memory: &Memory, data_type: &DataType) -> FFI_ArrowArray {
    let odd = cursor.byte();
    let absurd = [-1, i64::MIN, i64::MAX, i64::MAX - 5, 1 << 62, 1 << 58];
    let (length, offset) = (cursor.below(40), if odd & 1 == 0 { 0 } else { cursor.below(9) });
    let total = length + offset;
    let mut made = FFI_ArrowArray::empty();
    made.length = length as i64;
    made.offset = offset as i64;
    if odd & 2 != 0 {
        made.null_count = [-1, 0, 1, length as i64, length as i64 + 1, -2][cursor.below(6)];
    }
    let physical = match data_type {
        DataType::Dictionary(key, _) => key,
        other => other,
    };
    let mut buffers = buffers_of(cursor, memory, physical, odd, total);
    let mut children: Vec<*mut FFI_ArrowArray> = Vec::new();
    for field in drumlin::segment::children(data_type) {
        children.push(memory.keep(array(cursor, memory, field.data_type())));
    }
    if let DataType::Dictionary(_, values) = data_type {
        made.dictionary = memory.keep(array(cursor, memory, values));
    }
    made.n_buffers = buffers.len() as i64;
    made.n_children = children.len() as i64;
    if odd & 32 != 0 {
        match cursor.below(9) {
            0 => made.length = absurd[cursor.below(6)],
            1 => made.offset = absurd[cursor.below(6)],
            2 => made.n_buffers = [-1, 0, made.n_buffers - 1][cursor.below(3)],
            3 if !buffers.is_empty() => {
                let at = cursor.below(buffers.len());
                buffers[at] = null();
            }
            4 => made.n_children = [-1, 0, made.n_children - 1][cursor.below(3)],
            5 if !children.is_empty() => {
                let at = cursor.below(children.len());
                children[at] = null_mut();
            }
            6 => made.dictionary = null_mut(),
            7 => buffers.clear(),
            _ => children.clear(),
        }
    }
    // SAFETY: kept by `memory`, in which nothing moves.
    unsafe {
        made.buffers = if buffers.is_empty() { null_mut() } else { (*memory.keep(buffers)).as_mut_ptr() };
        made.children = if children.is_empty() { null_mut() } else { (*memory.keep(children)).as_mut_ptr() };
    }
    made.release = Some(release_array);
    made
}

/// The buffers of `total` values of a type.
fn buffers_of(
    cursor: &mut Cursor<'_>,
    memory: &Memory,
    physical: &DataType,
    odd: u8,
    total: usize,
) -> Vec<*const c_void> {
    let plan = layout(physical);
    let mut buffers: Vec<*const c_void> = Vec::new();
    let askew = odd & 4 != 0 && cursor.one_in(4);
    if plan.can_contain_null_mask {
        let mask = cursor.bytes(total.div_ceil(8));
        buffers.push(if odd & 2 == 0 { null() } else { memory.keep_bytes(&mask, askew).cast_const().cast() });
    }
    let mut end = 0;
    for spec in &plan.buffers {
        let content = match spec {
            BufferSpec::FixedWidth { byte_width, .. } => {
                let mut content = cursor.bytes(((total + 1) * byte_width).min(4096));
                content.resize((total + 1) * byte_width, 0);
                let strings = plan.buffers.iter().any(|spec| matches!(spec, BufferSpec::VariableWidth));
                if strings
                    || odd & 8 == 0
                        && matches!(physical, DataType::List(_) | DataType::LargeList(_) | DataType::Map(..))
                {
                    end = ascend(&mut content, *byte_width, odd & 8 == 0);
                }
                content
            }
            BufferSpec::BitMap => cursor.bytes(total.div_ceil(8)),
            BufferSpec::VariableWidth => match odd & 16 {
                0 => cursor.bytes(end).into_iter().map(|byte| byte & 0x7f).collect(),
                _ => cursor.bytes(end),
            },
            BufferSpec::AlwaysNull => Vec::new(),
        };
        buffers.push(memory.keep_bytes(&content, askew).cast_const().cast());
    }
    if plan.variadic {
        let lengths: Vec<usize> = (0..cursor.below(3)).map(|_| cursor.below(30)).collect();
        for length in &lengths {
            buffers.push(memory.keep_bytes(&cursor.bytes(*length), false).cast_const().cast());
        }
        let lengths: Vec<u8> = lengths.iter().flat_map(|length| (*length as i64).to_ne_bytes()).collect();
        buffers.push(memory.keep_bytes(&lengths, false).cast_const().cast());
    }
    buffers
}

/// Turns the content into offsets in small steps, in ascending order if `ordered`. The last one is always true, because it
/// cannot be checked; returns it.
fn ascend(content: &mut [u8], width: usize, ordered: bool) -> usize {
    let mut end = 0;
    for slot in content.chunks_exact_mut(width) {
        end += usize::from(slot[0] % 4);
        if ordered {
            slot.copy_from_slice(&(end as u64).to_le_bytes()[..width]);
        }
    }
    let last = content.len() - width;
    content[last..].copy_from_slice(&(end as u64).to_le_bytes()[..width]);
    end
}

/// Imports an array of this type, and stores it as a column.
fn import(cursor: &mut Cursor<'_>, memory: &Memory, data_type: &DataType) {
    let how = cursor.byte();
    if matches!(data_type, DataType::Union(..) | DataType::RunEndEncoded(..)) || weight(data_type) > 64 {
        return;
    }
    let array = array(cursor, memory, data_type);
    // SAFETY: what it points to is kept, and has the length it says.
    let Ok(data) = (unsafe { drumlin_c_data::array(array, data_type) }) else { return };
    if let Ok(array) = checked_array(&data) {
        assert_eq!(array.len(), data.len());
        array.to_data().validate_full().expect("a sound array");
    }
    if how & 1 == 0 || data.len() > 1000 {
        return;
    }
    let ids: ArrayData = Int64Array::from_iter_values(0..data.len() as i64).into();
    let fields: Fields = vec![Field::new("id", DataType::Int64, true), Field::new("c", data_type.clone(), true)].into();
    let rows = ArrayDataBuilder::new(DataType::Struct(fields.clone())).len(data.len()).child_data(vec![ids, data]);
    // SAFETY: checked by the code that takes it, which is what is tested.
    let rows = unsafe { rows.build_unchecked() };
    let schema = Arc::new(Schema::new(fields));
    let Ok(store) = Store::open_with("memory://", Options { cpu_threads: 1, ..Options::default() }) else { return };
    let frame = Frame::from_foreign(schema.clone(), std::iter::once(Ok(rows)));
    let written = match how >> 1 & 1 {
        0 => store.write("t", frame, &Default::default()).is_ok(),
        _ => {
            let key = TableOptions { key: vec!["id".into()], ..TableOptions::default() };
            store.table("t").create(schema, key).is_ok() && store.table("t").upsert(frame, &Default::default()).is_ok()
        }
    };
    if written {
        for batch in store.table("t").collect(&Default::default()).expect("what was taken") {
            batch.columns().iter().for_each(|column| column.to_data().validate_full().expect("a sound array"));
        }
    }
}

/// The number of types that a type consists of.
fn weight(data_type: &DataType) -> usize {
    use DataType::*;
    1 + match data_type {
        Struct(fields) => fields.iter().map(|field| weight(field.data_type())).sum(),
        List(field) | LargeList(field) | ListView(field) | LargeListView(field) | FixedSizeList(field, _) => {
            weight(field.data_type())
        }
        Map(field, _) => weight(field.data_type()),
        Dictionary(_, values) => weight(values),
        FixedSizeBinary(size) => usize::try_from(*size).unwrap_or(1000) / 8,
        Union(..) | RunEndEncoded(..) => 1000,
        _ => 0,
    }
}
