//! The functions of the language, and their names.

/// A part of a date, a time or a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePart {
    Year,
    Quarter,
    Month,
    /// Of the ISO calendar.
    Week,
    Day,
    DayOfYear,
    /// From 0, a Sunday.
    DayOfWeek,
    /// From 1, a Monday.
    IsoDayOfWeek,
    Hour,
    Minute,
    Second,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarFunction {
    Part(TimePart),
    DateTrunc,
    Lower,
    Upper,
    Trim,
    TrimStart,
    TrimEnd,
    Length,
    Substring,
    Replace,
    Concat,
    Abs,
    Round,
    Floor,
    Ceil,
    Sign,
    Coalesce,
    NullIf,
}

/// The most values that a function takes.
pub const ARGUMENTS_MAX: usize = 100;

/// Names, with the least and the greatest number of values. The first name of a function is that of its canonical text.
pub const FUNCTIONS: [(&str, ScalarFunction, usize, usize); 35] = [
    ("year", ScalarFunction::Part(TimePart::Year), 1, 1),
    ("quarter", ScalarFunction::Part(TimePart::Quarter), 1, 1),
    ("month", ScalarFunction::Part(TimePart::Month), 1, 1),
    ("week", ScalarFunction::Part(TimePart::Week), 1, 1),
    ("weekofyear", ScalarFunction::Part(TimePart::Week), 1, 1),
    ("day", ScalarFunction::Part(TimePart::Day), 1, 1),
    ("dayofmonth", ScalarFunction::Part(TimePart::Day), 1, 1),
    ("dayofyear", ScalarFunction::Part(TimePart::DayOfYear), 1, 1),
    ("dayofweek", ScalarFunction::Part(TimePart::DayOfWeek), 1, 1),
    ("weekday", ScalarFunction::Part(TimePart::DayOfWeek), 1, 1),
    ("isodow", ScalarFunction::Part(TimePart::IsoDayOfWeek), 1, 1),
    ("hour", ScalarFunction::Part(TimePart::Hour), 1, 1),
    ("minute", ScalarFunction::Part(TimePart::Minute), 1, 1),
    ("second", ScalarFunction::Part(TimePart::Second), 1, 1),
    ("date_trunc", ScalarFunction::DateTrunc, 2, 2),
    ("lower", ScalarFunction::Lower, 1, 1),
    ("lcase", ScalarFunction::Lower, 1, 1),
    ("upper", ScalarFunction::Upper, 1, 1),
    ("ucase", ScalarFunction::Upper, 1, 1),
    ("trim", ScalarFunction::Trim, 1, 1),
    ("ltrim", ScalarFunction::TrimStart, 1, 1),
    ("rtrim", ScalarFunction::TrimEnd, 1, 1),
    ("length", ScalarFunction::Length, 1, 1),
    ("len", ScalarFunction::Length, 1, 1),
    ("substring", ScalarFunction::Substring, 2, 3),
    ("substr", ScalarFunction::Substring, 2, 3),
    ("replace", ScalarFunction::Replace, 3, 3),
    ("concat", ScalarFunction::Concat, 1, ARGUMENTS_MAX),
    ("abs", ScalarFunction::Abs, 1, 1),
    ("round", ScalarFunction::Round, 1, 2),
    ("floor", ScalarFunction::Floor, 1, 1),
    ("ceil", ScalarFunction::Ceil, 1, 1),
    ("sign", ScalarFunction::Sign, 1, 1),
    ("coalesce", ScalarFunction::Coalesce, 1, ARGUMENTS_MAX),
    ("nullif", ScalarFunction::NullIf, 2, 2),
];

impl ScalarFunction {
    /// The name in canonical text.
    pub fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function, ..)| *function == self).map_or("", |(name, ..)| name)
    }
}
