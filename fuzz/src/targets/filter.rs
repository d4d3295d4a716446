//! A filter's text: what parses prints as text that parses to the same, and is then bound to a schema and evaluated, or
//! refused.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use drumlin::filter::{Filter, Verdict};

/// Rows of some types, with nulls.
fn batch() -> RecordBatch {
    let types = [
        ("i", DataType::Int64),
        ("u", DataType::UInt64),
        ("f", DataType::Float64),
        ("s", DataType::Utf8),
        ("b", DataType::Boolean),
        ("d", DataType::Decimal128(20, 3)),
        ("w", DataType::Decimal256(60, 2)),
        ("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        ("day", DataType::Date32),
        ("k", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))),
    ];
    let mut rng = fastrand::Rng::with_seed(1);
    let columns = types.iter().map(|(_, data_type)| super::arrays::array(&mut rng, data_type, 12, true)).collect();
    let fields: Vec<Field> = types.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of a length")
}

/// The target described above.
pub fn filter(bytes: &[u8]) {
    thread_local!(static BATCH: RecordBatch = batch());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(filter) = Filter::parse(text) else { return };
    let printed = filter.to_string();
    match Filter::parse(&printed) {
        Ok(again) => {
            assert_eq!(again, filter, "{printed}");
            assert_eq!(again.to_string(), printed);
        }
        Err(e) => panic!("'{text}' prints as '{printed}': {e}"),
    }
    let batch = BATCH.with(RecordBatch::clone);
    let Ok(bound) = filter.bind(&batch.schema()) else { return };
    if let Ok(mask) = bound.evaluate(&batch) {
        assert_eq!(mask.len(), batch.num_rows());
        let stats = |at: usize| Some(drumlin::segment::measure(batch.column(at)));
        let matching = mask.iter().filter(|row| *row == Some(true)).count();
        match bound.verdict(batch.num_rows() as u64, &stats) {
            Verdict::None => assert_eq!(matching, 0, "{printed}"),
            Verdict::All => assert_eq!(matching, batch.num_rows(), "{printed}"),
            Verdict::Some => {}
        }
    }
}

/// Filters with every word of the language.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "i = 3 and u <> 4 or not b",
        "f > 1.5e3 and f <= -0.25",
        "s like 'a%_' and s not like '%\\%' or s = 'it''s'",
        "i between 1 and 3 or i not between -5 and 5",
        "k in ('a', 'b', null) and s not in ('x')",
        "s is null or d is not null and w is distinct from 3",
        "d = 12.345 and w < 100000000000000000000.01",
        "t >= timestamp '2024-01-31 16:00:00' and t < '2024-02-01T00:00:00Z'",
        "day = date '2024-02-29' or day < '1969-12-31'",
        "i + u * 2 - 7 / 3 % 2 > -i",
        "(i = 1 or (i = 2 and (i = 3 or i = 4)))",
        "\"i\" = 1 and \"a \"\"quoted\"\" name\" = 2",
        "b and b = true and b is not false",
        "length(s) > 3 and lower(s) = 'x' and starts_with(s, 'a')",
        "i = 9223372036854775807 or u = 18446744073709551615 or i = -9223372036854775808",
        "a.b.c = 1 and f = 'nan'",
        "true",
        "i is not distinct from null",
        "year(t) = 2024 and date_trunc('month', day) >= '2024-01-01' and extract(hour from t) < 12",
        "coalesce(i, u, 0) = abs(i) or nullif(s, '') is null or round(d, 1) > floor(f)",
        "cast(s as int) > 3 or try_cast(f as decimal(5, 2)) <= 1.5 and i::text = '7' and t::date = day",
        "substring(concat(s, '-', i), 2, 3) = replace(upper(k), 'A', 'bb') and sign(f) = -1 and ceil(d) = i",
        "`i` in (1, 2) and contains(s, 'x') and ends_with(k, 'b') and length(trim(s)) = 2",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
