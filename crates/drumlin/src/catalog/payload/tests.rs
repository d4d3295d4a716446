//! Tests of payloads: what is stored is read back, and damage is noticed.

use serde_json::json;

use super::*;

#[test]
fn json_comes_back_as_it_was() {
    let mut wide = serde_json::Map::new();
    for n in 0..70_000 {
        wide.insert(format!("{n}"), json!(n));
    }
    for value in [
        json!(null),
        json!([true, false, 0, 127, 128, 255, 256, 65535, 65536, u32::MAX, u64::MAX, i64::MAX]),
        json!([-1, -32, -33, -128, -129, -32768, -32769, i32::MIN, i64::MIN, 1.5, 1e300, -0.0]),
        json!({"b": {"x": [], "y": {}}, "a": "ü".repeat(40), "": "z".repeat(300), "c": "w".repeat(70_000)}),
        json!((0..20).collect::<Vec<i32>>()),
        serde_json::Value::Object(wide),
    ] {
        let payload = Payload::json(&value).unwrap();
        assert_eq!(payload.to_json().unwrap(), value);
        assert_eq!(Payload::from_stored(payload.stored()).unwrap(), payload);
        let Content::Json(content) = payload.content() else { panic!("it is JSON") };
        assert_eq!(content.to_payload().unwrap(), payload);
    }
    assert_eq!(Payload::bytes(&[0, 255]).unwrap().as_bytes(), Some(&[0, 255][..]));
}

#[test]
fn fields_are_found() {
    let payload = Payload::json(&json!({"a": {"b": [10, {"c": "x"}]}, "d": 1})).unwrap();
    let field = |text: &str| {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        payload.field(&names).map(Value::to_json)
    };
    assert_eq!(field("a.b.1.c"), Some(json!("x")));
    assert_eq!(field("a.b.0"), Some(json!(10)));
    assert_eq!(field("d"), Some(json!(1)));
    assert_eq!(field("d.e"), None);
    assert_eq!(field("a.b.2"), None);
}

#[test]
fn too_large_and_too_deep_are_refused() {
    let deep = (0..130).fold(json!(1), |value, _| json!([value]));
    assert!(Payload::json(&deep).unwrap_err().message().contains("nested"));
    assert!(Payload::bytes(&vec![0; PAYLOAD_BYTES_MAX]).is_ok());
    assert!(Payload::bytes(&vec![0; PAYLOAD_BYTES_MAX + 1]).unwrap_err().message().contains("at most"));
}

#[test]
fn damage_is_noticed_and_never_panics() {
    let payload = Payload::json(&json!({"a": {"b": [10, {"c": "xyz"}]}, "d": -1.5})).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..50_000 {
        let mut stored = payload.stored().to_vec();
        for _ in 0..rng.usize(1..3) {
            let at = rng.usize(..stored.len());
            stored[at] = rng.u8(..);
        }
        stored.truncate(rng.usize(..=stored.len()));
        if let Ok(payload) = Payload::from_stored(&stored) {
            drop(payload.to_json());
        }
    }
    assert!(Payload::from_stored(&[]).is_err() && Payload::from_stored(&[7, 1]).is_err());
    // An array of four billion missing values; an object with a duplicate name.
    assert!(Payload::from_stored(&[JSON, 0xdd, 255, 255, 255, 255]).is_err());
    assert!(Payload::from_stored(&[JSON, 0x82, 0xa1, b'a', 1, 0xa1, b'a', 2]).is_err());
}
