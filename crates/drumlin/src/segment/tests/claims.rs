//! Segments that claim more than they can hold, and texts that are not UTF-8.

use arrow::datatypes::Field;

use super::*;
use crate::base::ErrorKind;
use crate::segment::forms::wire::Writer;

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type, true))
}

/// The error of decoding `bytes`, in both forms.
fn refused(bytes: Vec<u8>, rows: usize, data_type: &DataType) -> crate::base::Error {
    for form in [Form::Native, Form::Exact] {
        let error = decode(aligned(&bytes), rows, data_type, form).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    decode(aligned(&bytes), rows, data_type, Form::Exact).unwrap_err()
}

// faults: hostile sizes x read
#[test]
fn few_bytes_do_not_ask_for_much_memory() {
    let fixed = |below: DataType, size: i32| DataType::FixedSizeList(item(below), size);
    let nested = (0..4).fold(DataType::Int64, |below, _| fixed(below, 10_000));
    for data_type in [
        fixed(DataType::Int64, 100_000),
        nested,
        DataType::FixedSizeBinary(1 << 20),
        DataType::Struct((0..2000).map(|n| Field::new(n.to_string(), DataType::Decimal256(9, 0), true)).collect()),
    ] {
        // All null; and a non-null list with null elements.
        let error = refused(vec![FormTag::Null as u8], 122_880, &data_type);
        assert!(error.message().contains("more than a segment of"), "{error}");
        if data_type.is_nested() && !matches!(data_type, DataType::Struct(_)) {
            refused(vec![FormTag::FixedList as u8, FormTag::Null as u8], 122_880, &data_type);
        }
    }
    // One list of 2^31 nulls.
    let mut out = Writer::default();
    out.u8(FormTag::List as u8);
    out.varint(1 << 31);
    crate::segment::forms::words::Words::new::<i64>(drumlin_codec::Ptype::I64, vec![1 << 31], None).write(&mut out);
    out.u8(FormTag::Null as u8);
    let bytes = out.finish();
    assert!(bytes.len() < 32);
    refused(bytes, 1, &DataType::LargeList(item(DataType::Int64)));
    // A dictionary of 2^30 nulls.
    let mut out = Writer::default();
    out.u8(FormTag::Dictionary as u8);
    out.varint(1 << 30);
    out.raw(&[FormTag::Null as u8, FormTag::Null as u8]);
    refused(out.finish(), 1, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Int64)));
    // Strings as a dictionary of more, all empty, than its keys can tell from each other.
    for (count, sound) in [(1 << 16, true), ((1 << 16) + 1, false), (1 << 20, false)] {
        let mut out = Writer::default();
        out.u8(FormTag::Dictionary as u8);
        out.varint(count);
        let codes = crate::segment::forms::words::Words::new::<u16>(drumlin_codec::Ptype::U16, vec![0; 9], None);
        codes.write(&mut out);
        out.raw(&encode(&(Arc::new(StringArray::from(vec![""; count as usize])) as ArrayRef)).unwrap().bytes);
        let bytes = out.finish();
        assert!(bytes.len() < 1000, "{}", bytes.len());
        for form in [Form::Native, Form::Exact] {
            assert_eq!(decode(aligned(&bytes), 9, &DataType::Utf8, form).is_ok(), sound, "{count}");
        }
        assert_eq!(decode_rows(aligned(&bytes), 9, &DataType::Utf8, &[0, 8]).is_ok(), sound, "{count}");
    }
}

/// One string of a dictionary, many times: what is made of few bytes is its strings, not only where they begin.
#[test]
fn few_strings_are_not_repeated_without_a_limit() {
    let of = |rows: usize, length: usize| {
        let mut out = Writer::default();
        out.u8(FormTag::Dictionary as u8);
        out.varint(1);
        crate::segment::forms::words::Words::new::<u8>(drumlin_codec::Ptype::U8, vec![0; rows], None).write(&mut out);
        out.raw(&encode(&(Arc::new(StringArray::from(vec!["x".repeat(length)])) as ArrayRef)).unwrap().bytes);
        out.finish()
    };
    for (rows, length) in [(20 << 20, 30), (42 << 20, 9)] {
        let bytes = of(rows, length);
        assert!(bytes.len() < 2000, "{}", bytes.len());
        let error = decode(aligned(&bytes), rows, &DataType::Utf8, Form::Exact).unwrap_err();
        assert!(error.message().contains("more than a segment of"), "{error}");
        // As the strings of a dictionary, too.
        let mut out = Writer::default();
        out.u8(FormTag::Dictionary as u8);
        out.varint(rows as u64);
        out.raw(&[FormTag::Null as u8]);
        out.raw(&bytes);
        let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        refused(out.finish(), 1, &data_type);
    }
    // What a row group holds is read.
    let array = decode(aligned(&of(122_880, 30)), 122_880, &DataType::Utf8, Form::Exact).unwrap();
    assert_eq!(array.as_string::<i32>().value(122_879).len(), 30);
}

#[test]
fn an_arrow_stream_is_not_believed_what_it_says_of_lengths() {
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

    // A schema of nearly 2 GiB by its length, of which there are 4 bytes.
    refused(vec![FormTag::Ipc as u8, 8, 0x00, 0x81, 0xf7, 0x77, 1, 2, 3, 4], 259, &DataType::Boolean);
    // Buffers that claim to be 2^45 bytes decompressed: allocating that would end the process.
    let batch = RecordBatch::try_from_iter([("", Arc::new(Int64Array::from(vec![7; 1000])) as ArrayRef)]).unwrap();
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    stream.write(&batch).unwrap();
    let mut bytes = stream.into_inner().unwrap();
    let length = 8000_i64.to_le_bytes();
    let at = bytes.windows(12).position(|part| part[..8] == length && part[8..] == [0x04, 0x22, 0x4d, 0x18]).unwrap();
    bytes[at..at + 8].copy_from_slice(&(1_i64 << 45).to_le_bytes());
    let error = read_stream(&bytes).unwrap_err();
    assert!(error.message().contains("compressed"), "{error}");
}

#[test]
fn what_would_be_taken_for_damage_is_refused_when_written() {
    // These columns share their memory; when they are read, they would not.
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 122_880]));
    let many = |columns: usize| -> ArrayRef {
        let field = |at: usize| Arc::new(Field::new(at.to_string(), DataType::Int64, true));
        let columns = (0..columns).map(|at| (field(at), zeros.clone())).collect::<Vec<_>>();
        Arc::new(StructArray::from(columns))
    };
    let (column, rows) = (many(60), 122_880);
    let bytes = encode(&column).unwrap().bytes;
    assert!(bytes.len() < 2000, "{} bytes", bytes.len());
    assert_eq!(&decode(aligned(&bytes), rows, column.data_type(), Form::Exact).unwrap(), &column);
    let error = encode(&many(600)).unwrap_err();
    assert!(error.message().contains("write fewer rows"), "{error}");
}

#[test]
fn texts_that_are_not_utf8_are_corrupt_in_every_form() {
    let shapes: Vec<Vec<String>> = vec![
        (0..5).map(|n| format!("plain {n}")).collect(),
        (0..200).map(|n| format!("one of few values {}", n % 3)).collect(),
        (0..300).map(|n| format!("a longer text with words, number {n}, {}", n * 7919 % 1000)).collect(),
        (0..6000).map(|n| format!("trained on many words, the {}th of them", n * 31 % 5000)).collect(),
        (0..500).map(|_| "the same text in every row".into()).collect(),
    ];
    let mut noticed = 0;
    for texts in shapes {
        let array: ArrayRef = Arc::new(StringArray::from(texts));
        for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let array = cast(&array, &data_type).unwrap();
            let bytes = encode(&array).unwrap().bytes;
            for at in 0..bytes.len().min(2000) {
                // A byte that occurs nowhere in UTF-8.
                let mut damaged = bytes.clone();
                damaged[at] = 0xff;
                quietly(|| {
                    for form in [Form::Exact, Form::Native] {
                        match decode(aligned(&damaged), array.len(), &data_type, form) {
                            Ok(array) => array.to_data().validate_full().unwrap_or_else(|e| panic!("byte {at}: {e}")),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Corrupt);
                                noticed += usize::from(error.to_string().to_lowercase().contains("utf"));
                            }
                        }
                    }
                    let picked = [3, 4];
                    if let Ok(array) = decode_rows(aligned(&damaged), array.len(), &data_type, &picked) {
                        array.to_data().validate_full().unwrap_or_else(|e| panic!("byte {at}, picked: {e}"));
                    }
                });
            }
        }
    }
    assert!(noticed > 100, "{noticed}");
}
