//! What the layers of a row group say of it as a whole: see [`super::patch`].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::patch::{Below, Layer, NewPatch, Patched};
use crate::base::Memo;
use crate::base::planted::{Bug, planted};
use crate::block::Address;
use crate::table::{RowGroup, StoredSchema};

/// Where a column of a row group is: in which layer, the newest being 0, and which column of that layer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::table) struct Located {
    pub layer: usize,
    pub index: usize,
}

impl RowGroup {
    /// Its layers, the newest first.
    pub fn layers(&self) -> impl Iterator<Item = Layer<'_>> {
        let patched = self.patched.as_deref();
        let has_places = self.tract().is_some();
        let newest = Layer {
            address: &self.address,
            schema: self.schema,
            columns: patched.map(|patched| &patched.columns[..]),
            has_places: has_places && patched.is_none(),
        };
        let below = patched.into_iter().flat_map(|patched| &patched.below);
        let last = patched.map_or(0, |patched| patched.below.len());
        std::iter::once(newest).chain(below.enumerate().map(move |(at, below)| Layer {
            address: &below.address,
            schema: below.schema,
            columns: (at + 1 < last).then_some(&below.columns[..]),
            has_places: has_places && at + 1 == last,
        }))
    }

    /// Where its layers are.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let below = self.patched.iter().flat_map(|patched| &patched.below);
        std::iter::once(&self.address).chain(below.map(|below| &below.address))
    }

    /// The table's schemas that its layers were written with.
    pub(in crate::table) fn schemas(&self) -> impl Iterator<Item = u32> {
        self.layers().map(|layer| layer.schema)
    }

    /// Encoded bytes of all layers.
    pub fn bytes(&self) -> u64 {
        self.addresses().fold(0, |sum, address| sum.saturating_add(address.bytes()))
    }

    /// How many of these bytes are not read any more.
    pub fn dead_bytes(&self) -> u64 {
        self.patched.as_ref().map_or(0, |patched| patched.dead_bytes)
    }

    /// Where the columns of its schema are; `None` for those that are in no layer.
    pub(in crate::table) fn located(&self, schemas: &[StoredSchema]) -> Vec<Option<Located>> {
        let own = &schemas[self.schema as usize];
        let find = |id: &str| {
            let mut found = self.layers().enumerate().filter_map(|(layer, of)| {
                let place = schemas[of.schema as usize].place_of_id(id)?;
                let index = match of.columns {
                    None => Some(place),
                    Some(columns) => columns.iter().position(|column| *column as usize == place),
                };
                index.map(|index| Located { layer, index })
            });
            if planted(Bug::ReadBelow) { found.last() } else { found.next() }
        };
        own.ids().map(find).collect()
    }

    /// The newest layer that has one of the columns with these ids, which decides what the row group has in all of them; `None` if it lacks
    /// one of them.
    pub(in crate::table) fn decided_by(&self, schemas: &[StoredSchema], ids: &BTreeSet<String>) -> Option<&Address> {
        let own = &schemas[self.schema as usize];
        let places = ids.iter().map(|id| own.place_of_id(id));
        if self.patched.is_none() {
            return places.collect::<Option<Vec<_>>>().map(|_| &self.address);
        }
        let located = self.located(schemas);
        let layers = places.map(|place| located[place?].map(|located| located.layer)).collect::<Option<Vec<_>>>()?;
        let newest = layers.into_iter().min()?;
        if planted(Bug::CoverByBase) { self.addresses().last() } else { self.addresses().nth(newest) }
    }

    /// The columns that `seen`, a schema of the table, calls by these names, by the layers that have them.
    pub(in crate::table) fn columns_by_layer<'n>(
        &self,
        schemas: &[StoredSchema],
        seen: &StoredSchema,
        names: impl Iterator<Item = &'n str>,
    ) -> Vec<(&Address, Vec<usize>)> {
        let own = &schemas[self.schema as usize];
        let places = names.filter_map(|name| own.place_of(name, seen));
        let mut layers: Vec<(&Address, Vec<usize>)> = self.addresses().map(|address| (address, Vec::new())).collect();
        match &self.patched {
            None => layers[0].1.extend(places),
            Some(_) => {
                let located = self.located(schemas);
                places.filter_map(|place| located[place]).for_each(|at| layers[at.layer].1.push(at.index));
                layers.retain(|(_, columns)| !columns.is_empty());
            }
        }
        layers
    }

    /// The record of this row group with a patch on it, visible to nobody yet: `new` of `schema` at `address`. Patches of which
    /// nothing is read any more are left out.
    pub(in crate::table) fn with_patch(
        &self,
        schemas: &[StoredSchema],
        schema: u32,
        address: Address,
        new: &NewPatch,
    ) -> RowGroup {
        let layers = self.layers().map(|layer| Below {
            address: *layer.address,
            schema: layer.schema,
            columns: layer.columns.unwrap_or_default().to_vec(),
        });
        let patched = Patched { columns: new.columns.clone(), dead_bytes: new.dead_bytes, below: layers.collect() };
        let mut record = RowGroup { address, schema, patched: Some(Arc::new(patched)), ..self.clone() };
        record.bounds = Memo::default();
        let located = record.located(schemas);
        let patched = record.patched.as_mut().map(Arc::make_mut).expect("it was just made");
        let base = patched.below.len();
        let mut layer = 0;
        patched.below.retain(|_| {
            layer += 1;
            layer == base || located.iter().flatten().any(|located| located.layer == layer)
        });
        record
    }

    /// The record with its schemas at other places.
    pub(in crate::table) fn with_schemas_at(mut self, place: impl Fn(u32) -> u32) -> RowGroup {
        self.schema = place(self.schema);
        if let Some(patched) = &mut self.patched {
            Arc::make_mut(patched).below.iter_mut().for_each(|below| below.schema = place(below.schema));
        }
        self
    }

    /// The record with layers that have moved, by `to`; and how many of them have.
    pub(in crate::table) fn moved(&self, to: impl Fn(&Address) -> Option<Address>) -> Option<RowGroup> {
        self.addresses().any(|address| to(address).is_some()).then(|| {
            let mut moved = self.clone();
            moved.address = to(&moved.address).unwrap_or(moved.address);
            if let Some(patched) = moved.patched.as_mut().map(Arc::make_mut) {
                patched.below.iter_mut().for_each(|below| below.address = to(&below.address).unwrap_or(below.address));
            }
            moved
        })
    }
}
