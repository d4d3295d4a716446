//! How persistent maps and vectors are encoded: like their standard counterparts. They are decoded item by item,
//! because the length that precedes them in the bytes must not decide how much is allocated.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For `#[serde(with)]` on an `imbl::OrdMap`.
pub mod ordered_map {
    use imbl::OrdMap;

    use super::*;

    /// As a map.
    pub fn serialize<K, V, S>(map: &OrdMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Ord + Clone + Serialize,
        V: Clone + Serialize,
        S: Serializer,
    {
        serializer.collect_map(map.iter())
    }

    /// From a map.
    pub fn deserialize<'de, K, V, D>(deserializer: D) -> Result<OrdMap<K, V>, D::Error>
    where
        K: Ord + Clone + Deserialize<'de>,
        V: Clone + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        struct MapVisitor<K, V>(PhantomData<(K, V)>);

        impl<'de, K, V> Visitor<'de> for MapVisitor<K, V>
        where
            K: Ord + Clone + Deserialize<'de>,
            V: Clone + Deserialize<'de>,
        {
            type Value = OrdMap<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut map = OrdMap::new();
                while let Some((key, value)) = access.next_entry()? {
                    map.insert(key, value);
                }
                Ok(map)
            }
        }

        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

/// For `#[serde(with)]` on an `imbl::Vector`.
pub mod vector {
    use imbl::Vector;

    use super::*;

    /// As a sequence.
    pub fn serialize<T, S>(vector: &Vector<T>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Clone + Serialize,
        S: Serializer,
    {
        serializer.collect_seq(vector.iter())
    }

    /// From a sequence.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Vector<T>, D::Error>
    where
        T: Clone + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        struct VectorVisitor<T>(PhantomData<T>);

        impl<'de, T: Clone + Deserialize<'de>> Visitor<'de> for VectorVisitor<T> {
            type Value = Vector<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut vector = Vector::new();
                while let Some(item) = access.next_element()? {
                    vector.push_back(item);
                }
                Ok(vector)
            }
        }

        deserializer.deserialize_seq(VectorVisitor(PhantomData))
    }
}
