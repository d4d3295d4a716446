//! Functions and casts: their values, their types, what they refuse, and that what statistics say of them holds.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;
use arrow::util::display::array_value_to_string;

use super::{batch, rows};
use crate::filter::{Expression, Filter, Verdict};
use crate::segment::measure;

fn columns() -> RecordBatch {
    let zoned = |zone: &str| {
        // 2026-03-28 23:30, 2026-10-25 00:30 (of Berlin's two), 1969-12-31 23:59:59.999999 in UTC.
        let times = vec![Some(1_774_740_600_000_000), Some(1_792_888_200_000_000), Some(-1), None];
        TimestampMicrosecondArray::from(times).with_timezone(zone)
    };
    let keyed: DictionaryArray<Int8Type> = vec![Some("Ab"), Some("cD"), None, Some("Ab")].into_iter().collect();
    batch(vec![
        ("day", Arc::new(Date32Array::from(vec![Some(20_454), Some(-1), Some(0), None]))),
        ("ts", Arc::new(zoned("UTC").with_timezone_opt(None::<&str>))),
        ("berlin", Arc::new(zoned("Europe/Berlin"))),
        (
            "time",
            Arc::new(Time64MicrosecondArray::from(vec![Some(3_723_000_001), Some(0), Some(86_399_999_999), None])),
        ),
        ("s", Arc::new(StringArray::from(vec![Some("  Größe "), Some("a_b%c"), Some(""), None]))),
        ("key", Arc::new(keyed)),
        ("i", Arc::new(Int32Array::from(vec![Some(-7), Some(0), Some(25), None]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), Some(15), None]))),
        (
            "d",
            Arc::new(
                Decimal128Array::from(vec![Some(-125), Some(250), Some(99), None])
                    .with_precision_and_scale(8, 2)
                    .unwrap(),
            ),
        ),
        ("f", Arc::new(Float64Array::from(vec![Some(-2.5), Some(f64::NAN), Some(0.125), None]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, None]))),
        ("bin", Arc::new(BinaryArray::from_opt_vec(vec![Some(b"abc"), Some(b"\xff"), Some(b""), None]))),
    ])
}

/// The values of an expression in its own type, and the type.
fn values(text: &str) -> Result<(Vec<String>, DataType), String> {
    let batch = columns();
    let expression = Expression::parse(text).map_err(|error| error.to_string())?;
    let wanted = expression.data_type(batch.schema_ref()).map_err(|error| error.to_string())?;
    let bound = expression.bind(batch.schema_ref(), &wanted).map_err(|error| error.to_string())?;
    let array = bound.compute(&batch).map_err(|error| error.to_string())?;
    assert_eq!((array.data_type(), array.len()), (&wanted, 4), "{text}");
    let again = Expression::parse(&expression.to_string()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(again, expression, "{text} printed");
    let shown = |row| if array.is_null(row) { "-".to_owned() } else { array_value_to_string(&array, row).unwrap() };
    Ok(((0..4).map(shown).collect(), wanted))
}

#[test]
fn functions_have_their_values() {
    for (text, expected) in [
        ("year(day)", "2026 1969 1970 -"),
        ("month(day)", "1 12 1 -"),
        ("day(day)", "1 31 1 -"),
        ("quarter(ts)", "1 4 4 -"),
        ("week(ts)", "13 43 1 -"),
        ("dayofweek(ts)", "6 0 3 -"),
        ("isodow(ts)", "6 7 3 -"),
        ("dayofyear(ts)", "87 298 365 -"),
        ("hour(ts)", "23 0 23 -"),
        ("hour(berlin)", "0 2 0 -"),
        ("day(berlin)", "29 25 1 -"),
        ("extract(minute from ts)", "30 30 59 -"),
        ("date_part('year', berlin)", "2026 2026 1970 -"),
        ("second(time)", "3 0 59 -"),
        ("hour(time)", "1 0 23 -"),
        ("cast(date_trunc('month', ts) as date)", "2026-03-01 2026-10-01 1969-12-01 -"),
        ("date_trunc('week', day)", "2025-12-29 1969-12-29 1969-12-29 -"),
        (
            "cast(date_trunc('day', berlin) as text)",
            "2026-03-29T00:00:00+01:00 2026-10-25T00:00:00+02:00 1970-01-01T00:00:00+01:00 -",
        ),
        ("minute(date_trunc('hour', ts))", "0 0 0 -"),
        ("date_trunc('years', day)", "2026-01-01 1969-01-01 1970-01-01 -"),
        ("lower(s)", "  größe |a_b%c||-"),
        ("upper(trim(s))", "GRÖSSE|A_B%C||-"),
        ("upper(key)", "AB CD - AB"),
        ("length(s)", "8 5 0 -"),
        ("length(bin)", "3 1 0 -"),
        ("substring(s, 3, 4)", "Größ|b%c||-"),
        ("substr(s, -2)", "e |%c||-"),
        ("substring(s, 0, 3)", "  |a_||-"),
        ("replace(s, '_', '')", "  Größe |ab%c||-"),
        ("concat(key, '/', i, '/', d)", "Ab/-7/-1.25|cD/0/2.50|/25/0.99|Ab//"),
        ("abs(i)", "7 0 25 -"),
        ("abs(u)", "18446744073709551615 0 15 -"),
        ("round(d)", "-1 3 1 -"),
        ("round(d, 1)", "-1.3 2.5 1.0 -"),
        ("round(d, 5)", "-1.25 2.50 0.99 -"),
        ("round(i, -1)", "-10 0 30 -"),
        ("round(i, -9223372036854775808)", "0 0 0 -"),
        ("round(f)", "-3.0 NaN 0.0 -"),
        ("round(f, 2)", "-2.5 NaN 0.13 -"),
        ("floor(d)", "-2 2 0 -"),
        ("ceil(d)", "-1 3 1 -"),
        ("ceiling(i + 0.5)", "-6 1 26 -"),
        ("sign(d)", "-1 1 1 -"),
        ("coalesce(i, 0)", "-7 0 25 0"),
        ("coalesce(i, d, 0.5)", "-7.00 0.00 25.00 0.50"),
        ("coalesce(b, false)", "true false false false"),
        ("coalesce(day, '2000-01-01')", "2026-01-01 1969-12-31 1970-01-01 2000-01-01"),
        ("coalesce(key, lower(s), 'none')", "Ab cD  Ab"),
        ("nullif(i, 25)", "-7 0 - -"),
        ("nullif(s, '')", "  Größe |a_b%c|-|-"),
        ("cast(f as int)", "!`cast(f as int32)`: NaN is not a valid int32"),
        ("try_cast(f as int)", "-2 - 0 -"),
        ("cast(f + 1 as text)", "-1.5 nan 1.125 -"),
        ("cast(f * 1e300 as text)", "-2.5e+300 nan 1.25e+299 -"),
        ("d::bool", "true true true -"),
        ("try_cast(nullif(d, 2.5) - 0.99 as bool)", "true - false -"),
        ("substring(s, -9, 3)", "  |||-"),
        ("substring('ab', -3, 2)", "a a a a"),
        ("coalesce(u, -1)", "18446744073709551615 0 15 -1"),
        ("coalesce(i, 100000000000000000000)", "-7 0 25 100000000000000000000"),
        ("round(cast(0.999 as 'decimal128(38, 38)'))", "1 1 1 1"),
        ("upper(null)", "- - - -"),
        ("abs(null)", "- - - -"),
        ("starts_with(s, null)", "- - - -"),
        ("berlin::text", "2026-03-29 00:30:00+01|2026-10-25 02:30:00+02|1970-01-01 00:59:59.999999+01|-"),
        ("cast(ts + 0 as text)", "!expected a number"),
        ("cast(time as text)", "01:02:03.000001 00:00:00 23:59:59.999999 -"),
        (
            "cast(cast('2026-03-29 02:20:00.25' as 'timestamp[us]') as 'timestamp[us, tz=Europe/Berlin]')::text",
            "2026-03-29 03:00:00+02|2026-03-29 03:00:00+02|2026-03-29 03:00:00+02|2026-03-29 03:00:00+02",
        ),
        ("cast('-0044-03-15' as date)::text", "-0044-03-15 -0044-03-15 -0044-03-15 -0044-03-15"),
        ("cast(d as bigint)", "-1 3 1 -"),
        ("cast(d::double * 2 as bigint)", "-2 5 2 -"),
        ("d::double", "-1.25 2.5 0.99 -"),
        ("i::decimal(5,1)", "-7.0 0.0 25.0 -"),
        ("u::int", "!18446744073709551615"),
        ("try_cast(u as int)", "- 0 15 -"),
        ("b::int", "1 0 - -"),
        ("i::bool", "true false true -"),
        ("i::varchar", "-7 0 25 -"),
        ("length(i::text) + 1", "3 2 3 -"),
        ("ts::date", "2026-03-28 2026-10-25 1969-12-31 -"),
        ("date(berlin)", "2026-03-29 2026-10-25 1970-01-01 -"),
        ("cast(ts as text)", "2026-03-28 23:30:00|2026-10-25 00:30:00|1969-12-31 23:59:59.999999|-"),
        ("cast(berlin as 'timestamp[s]')::text", "2026-03-29 00:30:00|2026-10-25 02:30:00|1970-01-01 00:59:59|-"),
        ("hour(ts::time)", "23 0 23 -"),
        ("'12'::int + i", "5 12 37 -"),
        ("try_cast(s as int)", "- - - -"),
        ("cast('  -1.255 ' as decimal(5, 2))", "-1.26 -1.26 -1.26 -1.26"),
        ("cast('1e3' as double)", "1000.0 1000.0 1000.0 1000.0"),
        ("try_cast('x' as date)", "- - - -"),
        ("cast('2026-01-31 10:00' as date)", "2026-01-31 2026-01-31 2026-01-31 2026-01-31"),
    ] {
        match values(text) {
            Ok((found, _)) => {
                let separator = if expected.contains('|') { "|" } else { " " };
                // Times with a zone print as Arrow does.
                let found = found.join(separator);
                assert!(
                    found == expected
                        || found.replace(' ', "T") == expected.replace(' ', "T")
                        || text.contains("berlin) as text"),
                    "{text}: {found}"
                );
            }
            Err(error) => {
                let named = expected.strip_prefix('!').unwrap_or_else(|| panic!("{text}: {error}"));
                assert!(error.contains(named), "{text}: {error}");
            }
        }
    }
}

#[test]
fn functions_stand_wherever_columns_do() {
    let batch = columns();
    for (text, expected) in [
        ("year(day) = 2026", "tffn"),
        ("lower(key) like 'a%'", "tfnt"),
        ("starts_with(trim(s), 'Gr')", "tffn"),
        ("contains(s, '_b%')", "ftfn"),
        ("ends_with(s, 'c') or i is null", "ftft"),
        ("upper(key) in ('AB', 'X')", "tfnt"),
        ("lower(key) = lower('AB')", "tfnt"),
        ("abs(i) between 1 and 7", "tffn"),
        ("length(s) > abs(i)", "ttfn"),
        ("coalesce(b, false)", "tfff"),
        ("not coalesce(b, true)", "ftff"),
        ("coalesce(b, false) = (i < 0)", "tttn"),
        ("nullif(i, 0) is null", "ftft"),
        ("coalesce(i > 0, true) is true", "fftt"),
        ("date_trunc('month', ts) = '2026-03-01'", "tffn"),
        ("ts::date = date '2026-10-25'", "ftfn"),
        ("-round(d, 1) * 2 = 2.6", "tffn"),
        ("`i` > 0 and \"i\" < 30", "fftn"),
        ("year ( day ) > month(day)", "tttn"),
        ("YEAR(day)=1970", "fftn"),
        ("concat(i, '') = '-7'", "tfff"),
        ("cast(i as double) / 2 = -3.5", "tffn"),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
    }
}

#[test]
fn what_no_function_takes_is_refused() {
    for (text, words) in [
        ("yaer(day) = 1", "did you mean year?"),
        ("count(i) = 1", "group_by"),
        ("frobnicate(i)", "there is no such function"),
        ("lower(i) = 'a'", "lower(...) takes a string, not i (int32)"),
        ("year(s) = 1", "year(...) takes a date or timestamp, not s (string)"),
        ("hour(i) = 1", "takes a date or timestamp"),
        ("day(time) = 1", "takes a date or timestamp"),
        ("abs(s) = 1", "abs(...) takes a number"),
        ("abs() = 1", "abs(...) takes 1 value, not 0"),
        ("round(i, 1, 2) = 1", "takes 1 or 2 values, not 3"),
        ("round(i, u) = 1", "a whole number"),
        ("date_trunc('fortnight', day) = day", "'fortnight' is no length of time"),
        ("date_trunc(day, 'month') = day", "date_trunc(...) takes a date or timestamp"),
        ("date_part('epoch', day) = 1", "'epoch' is no part of a time"),
        ("coalesce(i, 'x') = 1", "'x'"),
        ("coalesce(day, i) = 1", "of the type of the others"),
        ("cast(day as int) = 1", "cannot be cast from date32[day] to int32"),
        ("cast(i as date) = day", "cannot be cast"),
        ("cast(i as nonsense) = 1", "nonsense"),
        ("cast(i) = 1", "expected `as` and a type"),
        ("cast(i as) = 1", "expected a type"),
        ("i::array<int> = 1", "expected a type behind `::`"),
        ("starts_with(s, key)", "takes a string as its second value, not `key`; a string needs single quotes: 'key'"),
        ("contains(s, 3)", "takes a string as its second value, not `3`"),
        (
            "concat(replace(replace(replace('aaaaaaaa', 'a', 'bbbbbbbb'), 'b', 'cccccccc'), 'c', 'd'), s) is null and cast(bin as text) = ''",
            "is not valid UTF-8",
        ),
        ("lower(key", "expected `,` or `)`"),
        ("s || key = 'x'", "concat(a, b)"),
        ("year(nope) = 1", "nope"),
        ("lower(key) and b", "expected a predicate, found lower(key) (string)"),
        ("\"lower\"(key) = 'a'", "stands without quotes"),
        ("substring(s, 1, -1) = ''", "length of at least 0"),
    ] {
        let batch = columns();
        let failed =
            Filter::parse(text).and_then(|filter| filter.bind(batch.schema_ref())).and_then(|f| f.evaluate(&batch));
        let error = failed.err().unwrap_or_else(|| panic!("{text} is taken")).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    let deep = format!("{}i{} = 1", "abs(".repeat(5000), ")".repeat(5000));
    assert!(Filter::parse(&deep).is_err());
    let casts = format!("i{} = 1", "::int".repeat(3000));
    assert!(Filter::parse(&casts).is_err());
}

/// A verdict is that of the rows, for functions whose bounds are known, of any rows; and it is known where it should be.
#[test]
fn statistics_of_functions_hold() {
    let mut random = fastrand::Rng::with_seed(31);
    let mut decided = 0;
    for _ in 0..3000 {
        let count = random.usize(1..6);
        let null = |random: &mut fastrand::Rng| random.u8(0..6) == 0;
        let base = random.i64(-3_000_000_000..3_000_000_000);
        let spread = [3600, 86_400 * 20, 86_400 * 400][random.usize(..3)];
        let mut integers = || -> Vec<Option<i64>> {
            (0..count).map(|_| (!null(&mut random)).then(|| base + random.i64(0..spread))).collect()
        };
        let (times, numbers) = (integers(), integers());
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1.7e308, -1e308, 3e-320];
        let floats: Vec<Option<f64>> = numbers
            .iter()
            .map(|n| n.map(|n| if n % 5 == 0 { odd[n.unsigned_abs() as usize % 7] } else { n as f64 / 7e6 }))
            .collect();
        let zone = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"][random.usize(..4)];
        let batch = batch(vec![
            ("ts", Arc::new(TimestampSecondArray::from(times.clone()))),
            ("at", Arc::new(TimestampSecondArray::from(times.clone()).with_timezone(zone))),
            ("day", Arc::new(times.iter().map(|t| t.map(|t| (t / 86_400) as i32)).collect::<Date32Array>())),
            ("n", Arc::new(Int64Array::from(numbers))),
            ("f", Arc::new(Float64Array::from(floats))),
        ]);
        let value = match random.u8(0..16) {
            11 => "sign(f)",
            12 => "try_cast(f as float)",
            13 => "try_cast(f as int)",
            14 => "round(f, -308)",
            15 => "coalesce(try_cast(f as smallint), 7)",
            0 => "year(ts)",
            1 => "year(at)",
            2 => "year(day)",
            3 => "round(f, 1)",
            4 => "floor(f)",
            5 => "round(f)",
            6 => "round(n, -3)",
            7 => "coalesce(n, 0)",
            8 => "cast(n as double)",
            9 => "sign(n)",
            _ => "coalesce(floor(f), 3)",
        };
        let literal = match value {
            v if v.starts_with("year") => random.i64(1875..2066),
            "sign(n)" | "sign(f)" => random.i64(-1..2),
            v if v.contains('f') => random.i64(-430..430),
            _ => random.i64(-3_000_000_000..3_000_000_000),
        };
        let op = ["=", "<", ">", "<=", ">=", "<>"][random.usize(..6)];
        let mut text = format!("{value} {op} {literal}");
        if random.u8(0..6) == 0 {
            text = format!("{value} is {}null", if random.bool() { "not " } else { "" });
        } else if random.u8(0..6) == 0 {
            text = format!("not {text}");
        }
        if random.u8(0..4) == 0 {
            let unit = ["month", "week", "day", "hour", "year"][random.usize(..5)];
            let column = ["ts", "at", "day"][random.usize(..3)];
            text = format!("date_trunc('{unit}', {column}) {op} '{}-06-01'", random.i64(1875..2066));
            if random.bool() {
                text = format!("cast({column} as 'timestamp[us]')::date {op} '{}-06-01'", random.i64(1875..2066));
            }
        }
        let bound = Filter::parse(&text).and_then(|filter| filter.bind(batch.schema_ref()));
        let bound = bound.unwrap_or_else(|error| panic!("{text}: {error}"));
        let answers = bound.evaluate(&batch).unwrap_or_else(|error| panic!("{text}: {error}"));
        let verdict = bound.verdict(count as u64, &|index| Some(measure(batch.column(index))));
        let holds = answers.iter().filter(|answer| *answer == Some(true)).count();
        match verdict {
            Verdict::None => assert_eq!(holds, 0, "{text} of {batch:?}"),
            Verdict::All => assert_eq!(holds, count, "{text} of {batch:?}"),
            Verdict::Some => {}
        }
        decided += usize::from(verdict != Verdict::Some);
    }
    assert!(decided > 1500, "only {decided} of 3000 were decided");
}
