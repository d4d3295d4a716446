//! A filter's text; what parses prints as text that parses to the same.
#![no_main]

use drumlin::filter::Filter;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(filter) = Filter::parse(text) {
        assert_eq!(Filter::parse(&filter.to_string()).ok(), Some(filter));
    }
});
