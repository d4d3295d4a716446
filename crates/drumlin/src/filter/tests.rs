//! Tests of filters: random filters against a naive interpreter, messages, hostile text, and cases by hand.

mod data;
mod functions;
mod interpreter;
mod random;

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use arrow::datatypes::*;

use super::text::moment::Moment;
use super::{Filter, Verdict};
use crate::base::ErrorKind;
use crate::segment::{ColumnStats, Stat};

/// A batch of nullable columns.
fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// The rows as `t`, `f` and `n` (for null).
fn rows(text: &str, batch: &RecordBatch) -> String {
    let answer =
        Filter::parse(text).and_then(|filter| filter.bind(batch.schema_ref())).and_then(|bound| bound.evaluate(batch));
    let answer = answer.unwrap_or_else(|error| panic!("{text}: {error}"));
    answer.iter().map(|row| row.map_or('n', |row| if row { 't' } else { 'f' })).collect()
}

#[test]
fn decimals_of_256_bits_compare_where_their_digits_fit_128() {
    let values = [Some(5), None, Some(-150), Some(0)].map(|value| value.map(i256::from_i128));
    let wide = |digits| Decimal256Array::from(values.to_vec()).with_precision_and_scale(digits, 2).unwrap();
    let keyed = DictionaryArray::<Int8Type>::new(vec![0, 1, 2, 3].into(), Arc::new(wide(11)));
    let batch = batch(vec![
        ("few", Arc::new(wide(11))),
        ("many", Arc::new(wide(38))),
        ("keyed", Arc::new(keyed)),
        ("beyond", Arc::new(wide(40))),
    ]);
    for column in ["few", "many", "keyed"] {
        for (text, expected) in [
            ("is null", "ftff"),
            ("is not null", "tftt"),
            ("= 0.05", "tnff"),
            ("> -1.5", "tnft"),
            ("in (0, 0.05)", "tnft"),
            ("+ 1 > 1", "tnff"),
        ] {
            assert_eq!(rows(&format!("{column} {text}"), &batch), expected, "{column} {text}");
        }
    }
    assert_eq!(rows("beyond is null", &batch), "ftff");
    let error = Filter::parse("beyond = 1").unwrap().bind(batch.schema_ref()).unwrap_err();
    assert!(error.message().contains("cannot be compared"), "{error}");
    // As the store passes decimals of few digits to filters.
    let narrow = RecordBatch::try_from_iter([(
        "few",
        Arc::new(Decimal64Array::from(vec![Some(5), None]).with_precision_and_scale(11, 2).unwrap()) as ArrayRef,
    )]);
    let bound = Filter::parse("few is null").unwrap().bind(batch.schema_ref()).unwrap();
    assert_eq!(bound.evaluate(&narrow.unwrap()).unwrap(), BooleanArray::from(vec![false, true]));
}

#[test]
fn numbers_compare_by_value() {
    let batch = batch(vec![
        (
            "f",
            Arc::new(Float64Array::from(vec![
                9007199254740992.0,
                9007199254740994.0,
                -0.0,
                f64::NAN,
                -f64::NAN,
                f64::INFINITY,
            ])),
        ),
        ("u", Arc::new(UInt64Array::from(vec![0, 1, u64::MAX, u64::MAX - 1, 9007199254740993, 2]))),
        ("i", Arc::new(Int64Array::from(vec![0, 1, i64::MIN, i64::MAX, 9007199254740993, -1]))),
        ("d", Arc::new(Decimal128Array::from(vec![5, 50, 0, -5, 6, 100]).with_precision_and_scale(20, 2).unwrap())),
    ]);
    for (text, expected) in [
        ("f = 9007199254740993", "ffffff"),
        ("f > 9007199254740993", "ftfttt"),
        ("f <= 9007199254740993", "tftfff"),
        ("f = 9007199254740993.0", "tfffff"),
        ("f = i", "ffffff"),
        ("f < i", "ffffff"),
        ("f = 0", "fftfff"),
        ("f >= 0", "tttttt"),
        ("f < 0", "ffffff"),
        ("f > 1e400", "fffttt"),
        ("f = 'nan'", "fffttf"),
        ("f < 'NaN'", "tttfft"),
        ("f in (0, 'NaN', 9007199254740993)", "fftttf"),
        ("f in (0, double 'NaN')", "fftttf"),
        ("f < DOUBLE 'inf'", "tttfff"),
        ("double 'nan' > double '-inf' and double 'inf' > 1e400 and double 'nan' = double 'NaN'", "tttttt"),
        ("u > -1", "tttttt"),
        ("u = -1", "ffffff"),
        ("u = 18446744073709551615", "fftfff"),
        ("u < 18446744073709551616", "tttttt"),
        ("u > 1e30", "ffffff"),
        ("u > 1.5", "fftttt"),
        ("u = i", "ttfftf"),
        ("i < -9223372036854775807.5", "fftfff"),
        ("d = 0.05", "tfffff"),
        ("d > 0.05", "ftfftt"),
        ("d >= 0.051", "ftfftt"),
        ("d in (0.05, 0.5, 0.055)", "ttffff"),
        ("d * 2 = 0.1", "tfffff"),
        ("d + u = 1.5", "ftffff"),
        ("d / 2 = 0.025", "tfffff"),
        ("u / 2 = 0.5", "ftffff"),
        ("1 / u > 0.4", "ntffft"),
        ("10 % u = 0", "ntffft"),
        ("u - 1 < 0", "tfffff"),
        ("-u = -1", "ftffff"),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
    }
}

#[test]
fn overflow_is_an_error_and_nulls_are_not_looked_at() {
    let batch = batch(vec![
        ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
        ("z", Arc::new(UInt64Array::from(vec![None, Some(1)]))),
    ]);
    let evaluate = |text: &str| Filter::parse(text).unwrap().bind(batch.schema_ref()).unwrap().evaluate(&batch);
    let error = evaluate("u * u * 2 > 0").unwrap_err();
    assert_eq!(
        error.to_string(),
        "filter: the result of 18446744073709551615 * 18446744073709551615 does not fit into 128 bits"
    );
    assert_eq!(rows("u * z * 9223372036854775807 * 9223372036854775807 * 9 > 0", &batch), "nn");
}

/// By a constant they are calculated in floats, where these are exact.
#[test]
fn remainders_are_exact_at_every_size() {
    let mut random = fastrand::Rng::with_seed(7);
    let edges =
        [0, 1, 2, 3, 99, 100, 101, (1 << 31) - 1, 1 << 31, (1 << 51) + 1, (1 << 52) - 1, (1 << 52) + 1, i64::MAX];
    for _ in 0..400 {
        let bits = random.u32(1..64);
        let mut values: Vec<i64> = (0..40).map(|_| random.i64(..) >> (64 - bits)).collect();
        let most = 1_i64.checked_shl(bits - 1).unwrap_or(i64::MAX);
        values.extend(edges.iter().filter(|edge| **edge < most).flat_map(|edge| [*edge, -edge]));
        let divisor = match random.u8(0..3) {
            0 => edges[random.usize(1..edges.len())],
            1 => random.i64(1..1000),
            _ => (random.i64(..) >> random.u32(0..63)).max(1),
        };
        let divisor = if random.bool() { divisor } else { -divisor };
        let expected: Vec<i64> = values.iter().map(|value| value.wrapping_rem(divisor)).collect();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("n", Arc::new(Int64Array::from(values.clone()))), ("r", Arc::new(Int64Array::from(expected)))];
        let all: String = (0..values.len()).map(|_| 't').collect();
        assert_eq!(rows(&format!("n % ({divisor}) = r"), &batch(columns)), all, "{values:?} % {divisor}");
    }
}

#[test]
fn instants_compare_exactly() {
    let batch = batch(vec![
        ("s", Arc::new(TimestampSecondArray::from(vec![Some(0), Some(-1), None]))),
        ("us", Arc::new(TimestampMicrosecondArray::from(vec![1_500_000, -1, 0]).with_timezone("Europe/Berlin"))),
        ("d", Arc::new(Date32Array::from(vec![0, 1, -1]))),
        ("t", Arc::new(Time64MicrosecondArray::from(vec![0, 1, 3_600_000_000]))),
        ("x", Arc::new(DurationSecondArray::from(vec![0, 1, 2]))),
        ("y", Arc::new(DurationMillisecondArray::from(vec![0, 1, 2000]))),
    ]);
    for (text, expected) in [
        ("s > '1969-12-31 23:59:59.5'", "tfn"),
        ("s = '1969-12-31 23:59:59.5'", "ffn"),
        ("s < timestamp '1970-01-01 00:00:00.000000001'", "ttn"),
        ("us = '1970-01-01 00:00:01.5'", "tff"),
        ("us = timestamp '1970-01-01 02:00:01.5+02:00'", "tff"),
        ("us < '1970-01-01T00:00:00Z'", "ftf"),
        ("d = '1970-01-01'", "tff"),
        ("d < '1970-01-01 12:00'", "tft"),
        ("d = date '1970-01-02'", "ftf"),
        ("d = s", "tfn"),
        ("s <= d", "ttn"),
        ("t >= '00:00:00.0000005'", "ftt"),
        ("t = time '01:00'", "fft"),
        ("x = y", "tft"),
        ("x >= '1 s'", "ftt"),
        ("x = '00:00:01'", "ftf"),
        ("x < '0.5 s'", "tff"),
        ("x in ('2 seconds', '0 days')", "tft"),
        ("x in (interval '2 seconds', INTERVAL '0 days')", "tft"),
        ("interval '1 s' < x and interval '60 s' = interval '1 m'", "fft"),
        ("y between '1 ms' and '1.5 ms'", "ftf"),
        ("date '1970-01-01' = timestamp '1970-01-01 00:00'", "ttt"),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
    }
}

#[test]
fn texts_patterns_and_nested_fields() {
    let inner = StructArray::from(vec![(
        Arc::new(Field::new("b", DataType::Int32, true)),
        Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef,
    )]);
    let outer =
        StructArray::new(inner.fields().clone(), inner.columns().to_vec(), Some(vec![true, false, true].into()));
    let batch = batch(vec![
        ("s", Arc::new(StringArray::from(vec![Some("a%b\\c"), Some("Ab"), None]))),
        ("k", Arc::new(DictionaryArray::<Int8Type>::from_iter([Some("x"), None, Some("yy")]))),
        ("b", Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..], b"", b"a"]))),
        ("a", Arc::new(outer)),
        ("order", Arc::new(Int8Array::from(vec![1, 2, 3]))),
        ("na me", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("void", Arc::new(NullArray::new(3))),
    ]);
    for (text, expected) in [
        ("s like 'a!%b%' escape '!'", "tfn"),
        ("s like '%\\c'", "tfn"),
        ("s like '%\\c' escape '\\'", "tfn"),
        ("s ilike 'a_'", "ftn"),
        ("s not like 'a%'", "ftn"),
        ("s like null", "nnn"),
        ("s < 'Ac'", "ftn"),
        ("k = 'x'", "tnf"),
        ("k in ('yy', 'zz')", "fnt"),
        ("k is null", "ftf"),
        ("k <> s", "tnn"),
        ("b = x'00FF'", "tff"),
        ("b > x''", "tft"),
        ("a.b > 1", "fnt"),
        ("a.b is null", "ftf"),
        ("a is not null", "tft"),
        ("order >= 2 and not order = 3", "ftf"),
        ("\"na me\"", "tfn"),
        ("\"na me\" is true", "tff"),
        ("\"na me\" is not false", "tft"),
        ("\"na me\" = (order = 1)", "ttn"),
        ("\"na me\" in (true, null)", "tnn"),
        ("void = 1", "nnn"),
        ("void is null", "ttt"),
        ("void", "nnn"),
        ("null or order = 1", "tnn"),
        ("order in (1, null)", "tnn"),
        ("order not in (1, null)", "fnn"),
        ("order between 2 and 2.5", "ftf"),
        ("order not between 2 and null", "tnn"),
        ("1 = 1.0 and 'a' < 'b'", "ttt"),
        ("2 in (1, 2)", "ttt"),
        ("(order + 1) in (2, 2.5)", "tff"),
        ("order = 1 == (order < 2)", "ttt"),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
    }
    assert_eq!(Filter::parse("a.b > 1 or order = 1").unwrap().bind(batch.schema_ref()).unwrap().columns(), [3, 4]);
}

#[test]
fn text_is_canonical() {
    for (text, canonical) in [
        ("a==1 AND (b<>2 AND c!=3)", "a = 1 and b <> 2 and c <> 3"),
        ("not (a = 1 or b = 2) and c", "not (a = 1 or b = 2) and c"),
        ("a or b and c", "a or b and c"),
        ("(a or b) and c", "(a or b) and c"),
        ("a+b*c-(d-e)>-(-1)", "a + b * c - (d - e) > 1"),
        ("(a + b) + c = ((a * b) * c)", "a + b + c = a * b * c"),
        ("+(a + b) + c > 0", "a + b + c > 0"),
        ("a * (b / c) = -a % 2", "a * (b / c) = -a % 2"),
        ("- (a + 1) < 1e3", "-(a + 1) < 1e3"),
        ("x = 1.50 or x = .5 or x = 100 or x = 00.0", "x = 1.5 or x = 0.5 or x = 100 or x = 0.0"),
        ("(a = b) = c", "(a = b) = c"),
        ("a IS NULL is not true", "(a is null) is not true"),
        ("\"A b\".\"c\"\"d\" = 'it''s'", "\"A b\".\"c\"\"d\" = 'it''s'"),
        ("\"and\" in (1,-2,'x')", "\"and\" in (1, -2, 'x')"),
        (
            "date = DATE '2020-2-9' and date > timestamp '2020-01-01T10:00:00.500+02:00'",
            "date = date '2020-02-09' and date > timestamp '2020-01-01 08:00:00.5+00:00'",
        ),
        ("t = time '1:02' or b = X'0aFF'", "t = time '01:02:00' or b = x'0aff'"),
        (
            "f > DOUBLE ' +Infinity' or f < double 'NaN' or double > 1",
            "f > double 'inf' or f < double 'nan' or double > 1",
        ),
        ("x < INTERVAL '90 s' and interval > '90 s'", "x < interval '90 s' and interval > '90 s'"),
        ("s not ilike '%x' escape '!'", "s not ilike '%x' escape '!'"),
        ("x not between 1 and 2 or x not in (3)", "x not between 1 and 2 or x not in (3)"),
        (
            "time > 1 and close < open and volume = \"order\" and order = interval and select",
            "time > 1 and close < open and volume = order and order = interval and select",
        ),
        ("größe > 1", "\"größe\" > 1"),
    ] {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(filter.to_string(), canonical);
        assert_eq!(Filter::parse(canonical).unwrap(), filter, "{text}");
    }
}

#[test]
fn messages_say_what_and_where() {
    let schema = Schema::new(vec![
        Field::new("close", DataType::Float64, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("day", DataType::Date32, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
        Field::new("list", DataType::new_list(DataType::Int8, true), true),
    ]);
    for (text, expected) in [
        ("", "cannot parse filter ``: it is empty; leave it out for all rows"),
        ("close >", "Expected: an expression, found: EOF"),
        ("close > 1 name", "expected the end of the filter, `and` or `or`, found `name` at Line: 1, Column: 11"),
        ("close > 1; drop", "a filter has none at its end at Line: 1, Column: 10"),
        ("close > 1;", "`;` is not part of the filter language; a filter has none at its end"),
        (
            "close > 1 limit 5",
            "found `limit` at Line: 1, Column: 11; how many rows are read is an argument of its own: limit=5",
        ),
        ("where close > 1", "leave out the word `where`"),
        ("mod(qty, 2) = 0", "there is no such function in filters; calculations are + - * / and %"),
        ("now() > ts", "there is no such function in filters; a time is given"),
        ("abx(close) > 1", "`abx`: there is no such function in filters; did you mean abs?"),
        ("close > and", "`and`: expected a column, a literal or `(` here"),
        ("close = 'a", "Unterminated string literal at Line: 1, Column: 9"),
        ("close in (name)", "expected literals in `in (...)`, found `name`"),
        ("close in (select 1)", "a subquery"),
        ("name like 'a!' escape '!'", "ends with its escape character"),
        ("name like name", "expected literals in `like ...`, found `name`"),
        ("close::list = 1", "expected a type behind `::`, found `list` at Line: 1, Column: 8"),
        ("day = date '2020-02-30'", "`DATE '2020-02-30'`: expected YYYY-MM-DD"),
        ("close = double '1'", "`double '1'`: expected 'nan', 'inf' or '-inf'"),
        ("close = interval '1'", "`interval '1'`: expected a string such as '90 s'"),
        ("close = interval '1' day", "the units of an interval must be inside its string"),
        ("name = double 'nan'", "name (string): expected a string to compare with, found double 'nan'"),
        ("clse > 1", "the table has no column clse; did you mean close? (columns: close, name, day, at, list)"),
        ("Close > 1", "did you mean close?"),
        ("name > 1", "name (string): expected a string to compare with, found 1"),
        ("close = 'x'", "close (double): expected a number to compare with, found 'x'"),
        ("day = '2020-13-01'", "'2020-13-01' is not a date or timestamp"),
        ("at > timestamp '2020-01-01 00:00:00Z'", "has a time zone, but the column has none"),
        ("close", "expected a predicate, found close (double)"),
        ("name + 1 > 2", "expected a number for arithmetic, found name (string)"),
        ("name = close", "name (string) and close (double) cannot be compared"),
        ("list = 1", "list (list<int8>): values of this type cannot be compared"),
        ("close like 'a'", "expected a string column before `like`, found close (double)"),
        ("close.x = 1", "close has type double, so it has no field x"),
        ("close > x'1'", "expected pairs of hexadecimal digits"),
        ("1 = 'a'", "1 and 'a' cannot be compared"),
    ] {
        let error = Filter::parse(text).and_then(|filter| filter.bind(&schema).map(drop)).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures, decides nothing")]
fn hostile_text_is_refused_or_answered_on_a_small_stack() {
    let run = || {
        let many = |text: &str, times: usize| text.repeat(times);
        let hostile = [
            many("(", 100_000),
            format!("{}a{}", many("(", 100_000), many(")", 100_000)),
            format!("{}a = 1{}", many("(", 50), many(")", 50)),
            format!("{}a{}", many("(", 62), many(")", 61)),
            many("x", 10_000_000),
            many("not ", 200_000) + "a",
            many("not ", 62) + "a",
            many("- ", 100_000) + "a = 1",
            many("- ", 62) + "a = 1",
            many("a = 1 or ", 3_990) + ")",
            many("a = 1 or ", 3_990) + "a.",
            many("a + ", 3_990) + "a = 1",
            many("a + ", 3_990) + ")",
            "a".to_owned() + &many(" is null", 1_990),
            "a".to_owned() + &many(" is null", 1_990) + " )",
            "a".to_owned() + &many(" = a", 3_990),
            "a".to_owned() + &many(".a", 3_990),
            "a".to_owned() + &many(" in (1)", 1_990),
            "a".to_owned() + &many(" collate b", 3_990),
            "a".to_owned() + &many(" at time zone 'b'", 990),
            many("(a = 1 and s = 'x') or ", 1_320) + "a = 1",
            many("a in (", 60),
            many("a between ", 60),
            many("case ", 60),
            many("case when ", 60),
            many("date ", 5_000),
            many("interval ", 5_000),
            many("a like ", 60),
            many("array", 60) + "[",
            many("x in ((", 30),
            many("abs(", 100_000),
            format!("{}a{} = 1", many("abs(", 62), many(")", 62)),
            format!("{}a{} = 1", many("cast(", 62), many(" as int)", 62)),
            format!("a{} = 1", many("::int", 3_000)),
            "a = coalesce(".to_owned() + &many("a, ", 3_000) + "1)",
            many("concat(a, ", 62),
            many("select (", 60),
            "a = '\0'".to_owned(),
            "a\0 = 1".to_owned(),
            "\0".to_owned(),
            "\u{202e}\u{feff} = '\u{1F600}'".to_owned(),
            "/*".repeat(1000),
            "a = 1 -- end".to_owned(),
            "'".repeat(999),
            "\"".repeat(999),
            "a = ".to_owned() + &many("9", 100_000),
            "a = 1e".to_owned() + &many("9", 100_000),
            "a = 0.".to_owned() + &many("0", 100_000) + "1",
            "a = 1e99999999999999999999 or a < -1e-99999999999999999999".to_owned(),
            "a in (".to_owned() + &many("1, ", 100_000) + "2)",
            "s like '".to_owned() + &many("%_", 5_000) + "'",
        ];
        let columns =
            batch(vec![("a", Arc::new(Int64Array::from(vec![1]))), ("s", Arc::new(StringArray::from(vec!["x"])))]);
        let mut parsed = Vec::new();
        for text in hostile {
            let start = std::time::Instant::now();
            let head = text.chars().take(20).collect::<String>();
            if let Ok(filter) = Filter::parse(&text) {
                parsed.push(head.clone());
                assert!(Filter::parse(&filter.to_string()).is_ok_and(|again| again == filter), "{head}");
                if let Ok(bound) = filter.bind(columns.schema_ref()) {
                    drop(bound.evaluate(&columns));
                    bound.verdict(1, &|_| None);
                }
            }
            // What takes a square, or a power, of such a length takes minutes, or for ever; a busy machine may take a second.
            let took = start.elapsed();
            assert!(took.as_secs() < 15, "{head}: {took:?}");
        }
        assert_eq!(parsed.len(), 12, "{parsed:?}");
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn verdicts_use_bounds() {
    let schema = Schema::new(vec![
        Field::new("i", DataType::Int32, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("f", DataType::Float64, true),
    ]);
    let stats = |index: usize| {
        let bytes = |text: &str| Some(Stat::Bytes(text.as_bytes().to_vec()));
        Some(match index {
            0 => ColumnStats { nulls: 0, min: Some(Stat::Int(10)), max: Some(Stat::Int(20)), exact: true },
            1 => ColumnStats { nulls: 2, min: bytes("abc"), max: bytes("abz"), exact: false },
            _ => ColumnStats { nulls: 0, min: Some(Stat::Float(1.0)), max: Some(Stat::Float(f64::NAN)), exact: true },
        })
    };
    for (text, expected) in [
        ("i > 9", Verdict::All),
        ("i > 9.5 and i < 1e9", Verdict::All),
        ("i > 20", Verdict::None),
        ("i = 10.5", Verdict::None),
        ("i in (1, 2, 30)", Verdict::None),
        ("i not in (1, 2, 30)", Verdict::All),
        ("i between 0 and 15", Verdict::Some),
        ("i is null", Verdict::None),
        ("i is not null", Verdict::All),
        ("not i is null", Verdict::All),
        ("s like 'ab%'", Verdict::Some),
        ("s like 'ab%' or s is null", Verdict::Some),
        ("s like 'x%'", Verdict::None),
        ("s not like 'ab%'", Verdict::None),
        ("s like 'ab_'", Verdict::Some),
        ("s = 'b'", Verdict::None),
        ("s is null", Verdict::Some),
        ("f > 1e300", Verdict::Some),
        ("f >= 1", Verdict::All),
        ("f < 1", Verdict::None),
        ("i + 1 > 0", Verdict::Some),
        ("i = null", Verdict::None),
        ("(i > 100) is false", Verdict::All),
        ("i > 100 or f < 0", Verdict::None),
        ("true", Verdict::All),
    ] {
        assert_eq!(Filter::parse(text).unwrap().bind(&schema).unwrap().verdict(10, &stats), expected, "{text}");
    }
    assert_eq!(Filter::parse("true").unwrap().bind(&schema).unwrap().verdict(0, &stats), Verdict::None);
}

#[test]
fn moments_agree_with_arrow() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let text = format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09}",
            random.u32(1680..2260),
            random.u32(0..14),
            random.u32(0..33),
            random.u32(0..25),
            random.u32(0..61),
            random.u32(0..60),
            random.u32(0..1_000_000_000)
        );
        let text = text.trim_end_matches('0');
        let text = if text.ends_with('.') { format!("{text}0") } else { text.to_owned() };
        let ours = Moment::timestamp(&text);
        match string_to_timestamp_nanos(&text) {
            Err(_) => assert_eq!(ours, None, "{text}"),
            Ok(nanos) => {
                let ours = ours.unwrap_or_else(|| panic!("{text}"));
                assert_eq!(ours.value * 10i128.pow(9 - ours.scale as u32), i128::from(nanos), "{text}");
                assert_eq!(
                    Moment::timestamp(ours.to_string().trim_start_matches("timestamp '").trim_end_matches('\'')),
                    Some(ours)
                );
            }
        }
    }
}
