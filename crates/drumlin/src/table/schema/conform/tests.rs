//! What fits a table's schema, and what does not.

use arrow::array::{Int32Array, StringArray, StringViewArray};

use super::*;
use crate::base::ErrorKind;

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

#[test]
fn columns_are_matched_by_name_and_layouts_converted() {
    let table = schema(vec![Field::new("n", DataType::Int64, true), Field::new("s", DataType::Utf8, true)]);
    let batch = RecordBatch::try_from_iter([
        ("s", Arc::new(StringViewArray::from(vec!["a", "b"])) as ArrayRef),
        ("n", Arc::new(Int32Array::from(vec![1, 2]))),
    ])
    .unwrap();
    let fitted = conform(&batch, &table).unwrap();
    assert_eq!(fitted.schema(), table);
    assert_eq!(fitted.column(1).as_ref(), &StringArray::from(vec!["a", "b"]) as &dyn Array);
}

#[test]
fn a_mismatch_names_the_column_and_both_types() {
    let table = schema(vec![Field::new("n", DataType::Int32, false)]);
    let batch = |name: &str, column: ArrayRef| RecordBatch::try_from_iter([(name, column)]).unwrap();
    for (bad, words) in [
        (batch("n", Arc::new(StringArray::from(vec!["1"]))), ["column 'n'", "int32", "string"]),
        (batch("m", Arc::new(Int32Array::from(vec![1]))), ["the table has 'n'", "lacks", "the data has 'm'"]),
        (batch("n", Arc::new(Int32Array::from(vec![None, Some(1)]))), ["column 'n'", "no nulls", "has 1"]),
    ] {
        let error = conform(&bad, &table).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
        for word in words {
            assert!(error.message().contains(word), "{error} lacks {word}");
        }
    }
}

fn one(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap()
}

fn to(data_type: DataType) -> SchemaRef {
    schema(vec![Field::new("c", data_type, true)])
}

#[test]
fn units_and_floats_are_taken_where_every_value_is_exact() {
    use arrow::array::*;
    use arrow::datatypes::TimeUnit::*;
    let stamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    let big = 1_i64 << 53;
    let decimal = |values: Vec<Option<i128>>, digits: u8, scale: i8| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(digits, scale).unwrap())
    };
    let columns: Vec<(ArrayRef, DataType, Option<&str>)> = vec![
        (Arc::new(TimestampSecondArray::from(vec![Some(1), None])), stamp(Nanosecond, None), None),
        (Arc::new(TimestampSecondArray::from(vec![1, i64::MAX / 10])), stamp(Nanosecond, None), Some("row 1")),
        (Arc::new(TimestampNanosecondArray::from(vec![3_000_000, 5_000])), stamp(Microsecond, None), None),
        (Arc::new(TimestampNanosecondArray::from(vec![3_000, 5_001])), stamp(Microsecond, None), Some("row 1")),
        (Arc::new(TimestampSecondArray::from(vec![1])), stamp(Second, Some("UTC")), Some("the table has type")),
        (Arc::new(DurationSecondArray::from(vec![1])), DataType::Duration(Millisecond), None),
        (Arc::new(Time32SecondArray::from(vec![1])), DataType::Time64(Nanosecond), None),
        (Arc::new(Int64Array::from(vec![Some(-big), None, Some(big)])), DataType::Float64, None),
        (Arc::new(Int64Array::from(vec![0, big + 1])), DataType::Float64, Some("9007199254740993 in row 1")),
        (Arc::new(Int64Array::from(vec![i64::MAX])), DataType::Float64, Some("row 0")),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), DataType::Float64, Some("row 0")),
        (Arc::new(Int32Array::from(vec![1 << 24, (1 << 24) + 1])), DataType::Float32, Some("row 1")),
        (Arc::new(Int64Array::from(vec![Some(7), None])), DataType::UInt64, None),
        (Arc::new(Int64Array::from(vec![7, -1])), DataType::UInt64, Some("-1 in row 1")),
        (Arc::new(Int64Array::from(vec![7])), DataType::UInt32, Some("the table has type uint32")),
        (Arc::new(Float64Array::from(vec![1.0])), DataType::Int64, Some("the table has type int64")),
        (decimal(vec![Some(7), None], 1, 0), DataType::Decimal128(12, 3), None),
        (decimal(vec![Some(7_000), None], 12, 3), DataType::Decimal64(2, 0), None),
        (decimal(vec![Some(7_000), Some(1_234)], 12, 3), DataType::Decimal128(12, 2), Some("1.234 in row 1")),
        (decimal(vec![Some(123_456)], 12, 0), DataType::Decimal128(7, 2), Some("123456 in row 0")),
    ];
    for (column, wanted, refused) in columns {
        let what = format!("{} to {wanted}", column.data_type());
        match (conform(&one(column), &to(wanted)), refused) {
            (Ok(_), None) => {}
            (Err(e), Some(words)) => {
                assert_eq!(e.kind(), ErrorKind::SchemaMismatch, "{what}");
                assert!(e.message().contains(words) && e.message().contains("'c'"), "{what}: {e}");
            }
            (got, _) => panic!("{what}: {got:?}"),
        }
    }
}

#[test]
fn rows_are_counted_over_the_batches_of_a_frame() {
    let mut conform = Conform::new(to(DataType::Float64));
    let batch = |value: i64| one(Arc::new(arrow::array::Int64Array::from(vec![0, value])));
    conform.batch(&batch(1)).unwrap();
    let error = conform.batch(&batch((1 << 53) + 1)).unwrap_err();
    assert!(error.message().contains("row 3"), "{error}");
}

#[test]
fn decimals_beyond_their_digits_are_refused_at_every_depth() {
    use arrow::array::{Decimal128Array, Decimal256Array, ListArray, StructArray};
    use arrow::datatypes::{Int32Type, i256};
    let narrow = |values: Vec<Option<i128>>| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(9, 2).unwrap())
    };
    let bad = || narrow(vec![Some(1), None, Some(1_000_000_000)]);
    let wide = Decimal256Array::from(vec![i256::from(100), i256::from(-1)]).with_precision_and_scale(2, 0).unwrap();
    let field = |array: &ArrayRef| Arc::new(Field::new("x", array.data_type().clone(), true));
    let list = ListArray::new(field(&bad()), OffsetBuffer::from_lengths([1, 2]), bad(), None);
    let hidden = NullBuffer::from(vec![true, true, false]);
    let structs = |nulls| Arc::new(StructArray::new(vec![field(&bad())].into(), vec![bad()], nulls)) as ArrayRef;
    let keyed: arrow::array::DictionaryArray<Int32Type> =
        arrow::array::DictionaryArray::new(vec![0, 0, 2].into(), bad());
    let columns: Vec<(ArrayRef, Option<&str>)> = vec![
        (bad(), Some("10000000.00 in row 2")),
        (narrow(vec![Some(-999_999_999), None]), None),
        (Arc::new(wide), Some("100 in row 0")),
        (Arc::new(list), Some("in row 1")),
        (structs(None), Some("in row 2")),
        (structs(Some(hidden)), None),
        (Arc::new(keyed), Some("in row 2")),
    ];
    for (column, refused) in columns {
        let data_type = column.data_type().clone();
        let batch = one(column);
        for schema in [batch.schema(), to(data_type)] {
            match (conform(&batch, &schema), refused) {
                (Ok(_), None) => {}
                (Err(e), Some(words)) => {
                    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
                    assert!(e.message().contains(words) && e.message().contains("'c'"), "{e}");
                }
                (got, _) => panic!("{got:?}"),
            }
        }
    }
}

#[test]
fn nested_columns_are_brought_into_the_tables_type() {
    use arrow::array::{Int16Array, ListArray, StructArray};
    let below = |data_type: DataType, name: &str| {
        DataType::List(Arc::new(Field::new(
            name,
            DataType::Struct(vec![Field::new("a", data_type, true), Field::new("b", DataType::Utf8, true)].into()),
            true,
        )))
    };
    let fields = |name: &str, array: ArrayRef| (Arc::new(Field::new(name, array.data_type().clone(), true)), array);
    let structs: ArrayRef = Arc::new(StructArray::from(vec![
        fields("b", Arc::new(StringViewArray::from(vec!["x", "y", "z"]))),
        fields("a", Arc::new(Int16Array::from(vec![1, 2, 3]))),
    ]));
    let field = Arc::new(Field::new("element", structs.data_type().clone(), true));
    let list = ListArray::new(field, OffsetBuffer::from_lengths([1, 0, 2]), structs, None).slice(1, 2);
    let wanted = below(DataType::Float64, "item");
    let fitted = conform(&one(Arc::new(list)), &to(wanted.clone())).unwrap();
    assert_eq!(fitted.column(0).data_type(), &wanted);
    let text = array_value_to_string(fitted.column(0), 1).unwrap();
    assert_eq!(text, "[{a: 2.0, b: y}, {a: 3.0, b: z}]");
    let same = conform(&fitted, &to(below(DataType::Int8, "item"))).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::SchemaMismatch);
}

#[test]
fn lists_of_all_layouts_fit_each_other() {
    use arrow::array::{Int16Array, ListArray};
    let field = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
    let lists = |element: DataType| {
        [
            DataType::List(field(element.clone())),
            DataType::LargeList(field(element.clone())),
            DataType::ListView(field(element.clone())),
            DataType::LargeListView(field(element)),
        ]
    };
    let values: ArrayRef = Arc::new(Int16Array::from(vec![Some(9), Some(1), None, Some(3), Some(4), Some(-1)]));
    let nulls = NullBuffer::from(vec![true, true, false, true, true]);
    let list = ListArray::new(field(DataType::Int16), OffsetBuffer::from_lengths([1, 2, 0, 2, 1]), values, Some(nulls));
    let list: ArrayRef = Arc::new(list.slice(1, 3));
    let pairs = [Some(-1), None, Some(1), None, Some(-1), Some(-1), Some(3), Some(4)];
    let valid = NullBuffer::from(vec![true, true, false, true]);
    let pairs =
        FixedSizeListArray::new(field(DataType::Int16), 2, Arc::new(Int16Array::from(pairs.to_vec())), Some(valid));
    let of = |from: &DataType| cast_with_options(&list, from, &CastOptions::default()).unwrap();
    let all =
        lists(DataType::Int16).iter().map(of).chain([Arc::new(pairs.slice(1, 3)) as ArrayRef]).collect::<Vec<_>>();
    for came in all {
        let from = came.data_type().clone();
        for wanted in [lists(DataType::Int16), lists(DataType::Int64), lists(DataType::Float64)].concat() {
            let within = |array: ArrayRef| -> ArrayRef {
                let fields = vec![Field::new("l", array.data_type().clone(), true)].into();
                Arc::new(StructArray::new(fields, vec![array], None))
            };
            for (came, wanted) in [
                (came.clone(), wanted.clone()),
                (within(came.clone()), within(new_null_array(&wanted, 0)).data_type().clone()),
            ] {
                let fitted =
                    conform(&one(came), &to(wanted.clone())).unwrap_or_else(|e| panic!("{from} {wanted}: {e}"));
                assert_eq!(fitted.column(0).data_type(), &wanted);
                let shown: Vec<String> =
                    (0..3).map(|row| array_value_to_string(fitted.column(0), row).unwrap().replace(".0", "")).collect();
                let wanted = match wanted {
                    DataType::Struct(_) => ["{l: [1, ]}", "{l: }", "{l: [3, 4]}"],
                    _ => ["[1, ]", "", "[3, 4]"],
                };
                assert_eq!(shown, wanted, "{from}");
            }
        }
        // What no row has, before the slice and after it, does not count.
        for wanted in lists(DataType::UInt16) {
            conform(&one(came.clone()), &to(wanted.clone())).unwrap_or_else(|e| panic!("{from} {wanted}: {e}"));
        }
    }
    // The row of the value that does not fit.
    let negative: ArrayRef = Arc::new(Int16Array::from(vec![1, 2, -3]));
    let list = ListArray::new(field(DataType::Int16), OffsetBuffer::from_lengths([2, 1]), negative, None);
    for wanted in lists(DataType::UInt16) {
        let error = conform(&one(Arc::new(list.clone())), &to(wanted)).unwrap_err();
        assert!(error.message().contains("-3 in row 1"), "{error}");
    }
}

#[test]
fn times_outside_a_day_and_dates_with_a_time_are_refused() {
    use arrow::array::{Date64Array, Time32SecondArray, Time64NanosecondArray};
    let day = 86_400_000_000_000;
    let columns: Vec<(ArrayRef, Option<&str>)> = vec![
        (Arc::new(Time32SecondArray::from(vec![Some(0), None, Some(86_399)])), None),
        (Arc::new(Time32SecondArray::from(vec![0, 86_400])), Some("86400 in row 1")),
        (Arc::new(Time64NanosecondArray::from(vec![day - 1, -1])), Some("-1 in row 1")),
        (Arc::new(Time64NanosecondArray::from(vec![day])), Some("is not a time of day")),
        (Arc::new(Date64Array::from(vec![Some(-86_400_000), None, Some(0)])), None),
        (Arc::new(Date64Array::from(vec![0, 1])), Some("has a time of day")),
    ];
    for (column, refused) in columns {
        let batch = one(column);
        match (conform(&batch, &batch.schema()), refused) {
            (Ok(_), None) => {}
            (Err(e), Some(words)) => assert!(e.message().contains(words) && e.message().contains("'c'"), "{e}"),
            (got, _) => panic!("{got:?}"),
        }
    }
}

#[test]
fn two_fields_of_one_name_keep_their_values() {
    use arrow::array::StructArray;
    let pair = |data_type: DataType| {
        let fields = ["a", "a"].map(|name| Field::new(name, data_type.clone(), true));
        DataType::Struct(fields.to_vec().into())
    };
    let DataType::Struct(fields) = pair(DataType::Utf8) else { unreachable!() };
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec!["x"])), Arc::new(StringArray::from(vec!["y"]))];
    let batch = one(Arc::new(StructArray::new(fields, columns, None)));
    let fitted = conform(&batch, &to(pair(DataType::LargeUtf8))).unwrap();
    assert_eq!(array_value_to_string(fitted.column(0), 0).unwrap(), "{a: x, a: y}");
}
