//! What the layers of a row group say of it as a whole: see [`super::patch`].

use std::sync::Arc;

use super::patch::{Below, Layer, NewPatch, PATCHES_MAX, Patched};
use super::{RowGroup, StoredSchema};
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Memo, Result};
use crate::block::Address;

/// Where a column of a row group is: in which layer, the newest being 0, and which column of that layer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub layer: usize,
    pub index: usize,
}

impl RowGroup {
    /// Its layers, the newest first.
    pub fn layers(&self) -> impl Iterator<Item = Layer<'_>> {
        let patched = self.patched.as_deref();
        let newest =
            Layer { address: &self.address, schema: self.schema, columns: patched.map(|patched| &patched.columns[..]) };
        let below = patched.into_iter().flat_map(|patched| &patched.below);
        let last = patched.map_or(0, |patched| patched.below.len());
        std::iter::once(newest).chain(below.enumerate().map(move |(at, below)| Layer {
            address: &below.address,
            schema: below.schema,
            columns: (at + 1 < last).then_some(&below.columns[..]),
        }))
    }

    /// Where its layers are.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let below = self.patched.iter().flat_map(|patched| &patched.below);
        std::iter::once(&self.address).chain(below.map(|below| &below.address))
    }

    /// The table's schemas that its layers were written with.
    pub(super) fn schemas(&self) -> impl Iterator<Item = u32> {
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
    pub(super) fn located(&self, schemas: &[StoredSchema]) -> Vec<Option<Located>> {
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

    /// The columns that `seen`, a schema of the table, calls by these names, by the layers that have them.
    pub(super) fn columns_by_layer<'n>(
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
    pub(super) fn with_patch(
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

    /// Fails if what is said of its layers is inconsistent, as only a damaged record is. `schemas` is how many the table has.
    pub(super) fn check_layers(&self, schemas: usize) -> Result<()> {
        let Some(patched) = self.patched.as_deref() else { return Ok(()) };
        let bad = |what: &str| Err(Error::corrupt(format!("row group {}: {what}", self.id.0)));
        if patched.below.is_empty() || patched.below.len() > PATCHES_MAX {
            return bad(&format!(
                "there are {} layers below a patch; expected 1 to {PATCHES_MAX}",
                patched.below.len()
            ));
        }
        for (at, layer) in self.layers().enumerate() {
            if layer.schema as usize >= schemas {
                return bad("a layer has a schema that the table does not have");
            }
            let ascending = |columns: &[u32]| columns.windows(2).all(|pair| pair[0] < pair[1]);
            if layer.columns.is_some_and(|columns| columns.is_empty() || !ascending(columns)) {
                return bad("a patch has no columns, or has one twice");
            }
            if self.addresses().take(at).any(|other| other == layer.address) {
                return bad("two layers have the same address");
            }
        }
        match patched.dead_bytes > self.bytes() {
            true => bad("it counts more unread bytes than it has"),
            false => Ok(()),
        }
    }

    /// Fails if a patch has columns that its schema does not have.
    pub(super) fn check_columns(&self, schemas: &[StoredSchema]) -> Result<()> {
        let within = |layer: Layer<'_>| {
            let width = schemas[layer.schema as usize].0.fields().len();
            layer.columns.is_none_or(|columns| columns.iter().all(|column| (*column as usize) < width))
        };
        match self.patched.is_none() || self.layers().all(within) {
            true => Ok(()),
            false => Err(Error::corrupt(format!("row group {}: a patch has columns that do not exist", self.id.0))),
        }
    }

    /// The record with its schemas at other places.
    pub(super) fn with_schemas_at(mut self, place: impl Fn(u32) -> u32) -> RowGroup {
        self.schema = place(self.schema);
        if let Some(patched) = &mut self.patched {
            Arc::make_mut(patched).below.iter_mut().for_each(|below| below.schema = place(below.schema));
        }
        self
    }

    /// The record with layers that have moved, by `to`; and how many of them have.
    pub(super) fn moved(&self, to: impl Fn(&Address) -> Option<Address>) -> Option<RowGroup> {
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
