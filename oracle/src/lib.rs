//! The codec's nodes as Vortex's arrays, and the other way round: `cargo test --release`.

use drumlin_codec::{ENCODINGS, RawNode, STEPS};
use vortex_array::arrays::PrimitiveArray;
use vortex_array::arrays::primitive::PrimitiveArrayExt;
use vortex_array::buffer::BufferHandle;
use vortex_array::dtype::{DType, Nullability, PType};
use vortex_array::serde::ArrayChildren;
use vortex_array::session::ArraySessionExt;
use vortex_array::validity::Validity;
use vortex_array::{
    ArrayDeserialization, ArrayRef, ExecutionCtx, IntoArray, VortexSessionExecute, array_session,
    match_each_unsigned_integer_ptype,
};
use vortex_buffer::{Alignment, BufferMut, ByteBuffer};
use vortex_edition::{Edition, EditionId, EditionInclusion, EditionSessionExt};
use vortex_error::{VortexResult, vortex_bail, vortex_ensure, vortex_err};
use vortex_session::VortexSession;
use vortex_session::registry::Id;

#[cfg(test)]
mod tests;

const EDITION: EditionId = EditionId::new("drumlin", 2026, 8, 0);

/// Vortex, with the encodings that segments may hold.
pub struct Oracle {
    pub session: VortexSession,
    ids: [Id; ENCODINGS.len()],
}

impl Default for Oracle {
    fn default() -> Self {
        let session = array_session();
        vortex_alp::initialize(&session);
        vortex_fastlanes::initialize(&session);
        vortex_fsst::initialize(&session);
        vortex_onpair::initialize(&session);
        vortex_runend::initialize(&session);
        vortex_sequence::initialize(&session);
        vortex_sparse::initialize(&session);
        vortex_zigzag::initialize(&session);
        let editions = session.editions();
        editions.declare_edition(Edition { id: EDITION, min_library_version: Some("0.90.0") }).unwrap();
        for encoding in &ENCODINGS {
            editions.declare_inclusion(EditionInclusion::array(*encoding, EDITION)).unwrap();
        }
        session.enable_edition(EDITION).unwrap();
        Self { session, ids: ENCODINGS.map(Id::new_static) }
    }
}

impl Oracle {
    pub fn context(&self) -> ExecutionCtx {
        self.session.create_execution_ctx()
    }

    /// The nodes of an array; `None` if it has an encoding that segments may not hold.
    pub fn nodes(&self, array: &ArrayRef) -> Option<RawNode> {
        let parts = self.session.array_serialize(array).ok()??;
        let encoding = self.ids.iter().position(|id| *id == parts.serialized_id)?;
        Some(RawNode {
            encoding: encoding as u8,
            metadata: parts.metadata.into(),
            buffers: parts.buffers.iter().map(|buffer| bytes::Bytes::copy_from_slice(buffer.as_ref())).collect(),
            children: parts.children.iter().map(|child| self.nodes(child)).collect::<Option<_>>()?,
        })
    }

    /// The array of nodes.
    pub fn array(&self, node: &RawNode, dtype: &DType, len: usize) -> VortexResult<ArrayRef> {
        if node.encoding == STEPS {
            return self.steps(node, dtype, len);
        }
        let Some(id) = self.ids.get(usize::from(node.encoding)) else {
            vortex_bail!("encoding {} is not known", node.encoding);
        };
        let plugin = self.session.arrays().registry().get(id);
        let plugin = plugin.ok_or_else(|| vortex_err!("encoding {id} is not registered"))?;
        let children = Children { oracle: self, nodes: &node.children };
        // What holds words is aligned for them; bytes of texts are not, as they are cut anywhere.
        let aligned = |(at, bytes): (usize, &bytes::Bytes)| {
            let alignment = match node.name() {
                "vortex.primitive" | "fastlanes.bitpacked" | "vortex.varbinview" => 16,
                "vortex.fsst" if at == 0 => 8,
                _ => 1,
            };
            BufferHandle::new_host(ByteBuffer::copy_from_aligned(&bytes[..], Alignment::new(alignment)))
        };
        let buffers: Vec<BufferHandle> = node.buffers.iter().enumerate().map(aligned).collect();
        let parts = ArrayDeserialization::new(*id, dtype, len, &node.metadata, &buffers, &children);
        let array = plugin.deserialize(parts, &self.session)?;
        vortex_ensure!(array.len() == len && array.dtype() == dtype, "{id} is not {len} of {dtype}");
        Ok(array)
    }

    fn steps(&self, node: &RawNode, dtype: &DType, len: usize) -> VortexResult<ArrayRef> {
        let ptype = PType::try_from(dtype)?;
        let first = u64::from_le_bytes(node.metadata[..].try_into().map_err(|_| vortex_err!("8 bytes"))?);
        let unsigned = ptype.to_unsigned();
        let steps = self.array(&node.children[0], &DType::Primitive(unsigned, Nullability::NonNullable), len - 1)?;
        let steps = steps.execute::<PrimitiveArray>(&mut self.context())?;
        let values = match_each_unsigned_integer_ptype!(unsigned, |T| {
            let mut last = first as T;
            let mut values = BufferMut::<T>::with_capacity(len);
            values.push(last);
            values.extend(steps.as_slice::<T>().iter().map(|step| {
                last = last.wrapping_add(*step);
                last
            }));
            PrimitiveArray::new(values.freeze(), Validity::NonNullable)
        });
        Ok(values.reinterpret_cast(ptype).into_array())
    }
}

struct Children<'a> {
    oracle: &'a Oracle,
    nodes: &'a [RawNode],
}

impl ArrayChildren for Children<'_> {
    fn get(&self, index: usize, dtype: &DType, len: usize) -> VortexResult<ArrayRef> {
        let node = self.nodes.get(index).ok_or_else(|| vortex_err!("child {index} is missing"))?;
        self.oracle.array(node, dtype, len)
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }
}
