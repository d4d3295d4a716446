//! The payload of a log entry: any bytes decode or are refused, and what decodes applies or is refused.
#![no_main]

use drumlin::base::{Seq, Timestamp};
use drumlin::catalog::{State, Transaction};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(transactions) = Transaction::decode(bytes) {
        let mut state = State::default();
        for transaction in transactions {
            let _ = state.apply(&transaction, Seq(1), Timestamp(0));
        }
        let _ = state.check();
    }
});
