//! A Vortex array as bytes: the tree of its encodings, then the buffers.
//!
//! Vortex's own envelope (a flatbuffer with statistics) takes about 200 bytes and is not needed: element type and
//! length come from the reader, names of encodings from [`ENCODINGS`]. Metadata and buffers are those that each
//! encoding's serialiser returns, unchanged.
//!
//! ```text
//! tree   = node, buffers of all nodes in the order of the nodes (16-aligned if long, see wire.rs)
//! node   = encoding  u8       position in ENCODINGS, or STEPS
//!          metadata  varint length, bytes
//!          buffers   varint count, then a varint per buffer: its length * 8 + log2 of its alignment (0 to 4)
//!          children  varint count, then a node per child
//! ```
//! STEPS is ours, for ascending values (keys, offsets, ends of runs): metadata is the first value in 8 bytes; the only
//! child holds the distances from each value to the next, as unsigned integers of the same width.

use bytes::Bytes;
use vortex_alp::{ALP, ALPArrayExt};
use vortex_array::arrays::PrimitiveArray;
use vortex_array::arrays::primitive::PrimitiveArrayExt;
use vortex_array::buffer::BufferHandle;
use vortex_array::dtype::{DType, Nullability, PType};
use vortex_array::serde::ArrayChildren;
use vortex_array::session::ArraySessionExt;
use vortex_array::validity::Validity;
use vortex_array::{
    ArrayDeserialization, ArrayRef, IntoArray, match_each_integer_ptype, match_each_unsigned_integer_ptype,
};
use vortex_buffer::{Alignment, BufferMut, ByteBuffer};
use vortex_error::{VortexResult, vortex_bail, vortex_ensure, vortex_err};

use super::wire::{ALIGNMENT, Reader, Writer};
use crate::base::{Error, Result};
use crate::segment::encode::codec::{Codec, refused};
use crate::segment::encode::hint::{Hint, STEPS_BIT};
use crate::segment::encode::scheme::{Compression, Search};

/// No compressor nests this deeply; bounds recursion on damaged bytes.
const DEPTH_MAX: usize = 12;

/// The encoding of ascending integers by their distances. Not in Vortex's list: the one of Vortex is not declared
/// stable.
const STEPS: u8 = 128;

/// With fewer values than this, steps are not worth trying.
const STEPS_MIN: usize = 512;

/// A compressed array, ready to be written.
pub(in crate::segment) struct ArrayTree {
    nodes: Vec<u8>,
    buffers: Vec<ByteBuffer>,
    /// The longest array in it.
    elements: usize,
    found: Hint,
}

impl ArrayTree {
    /// Compresses `array`; `None` if Vortex fails or uses an encoding that segments may not hold, or if the result could not be
    /// read back.
    pub(in crate::segment) fn compress(codec: &Codec, array: &ArrayRef, search: Search) -> Option<Self> {
        let tree = match search.only {
            Some(only) if only.encodings & STEPS_BIT != 0 => Self::steps(codec, array, DEPTH_MAX, search),
            _ => None,
        };
        let tree = match tree {
            Some(steps) => steps,
            None => Self::of(codec, &codec.compress(array, search)?, DEPTH_MAX, search)?,
        };
        tree.checked(array.len())
    }

    /// The tree of an array that is already encoded; its ascending children may still be stored as steps.
    pub(in crate::segment) fn of_encoded(codec: &Codec, array: &ArrayRef) -> Option<Self> {
        let search = Search { only: Some(Hint::STEPS), compression: Compression::default() };
        Self::of(codec, array, DEPTH_MAX, search)?.checked(array.len())
    }

    fn checked(self, rows: usize) -> Option<Self> {
        (self.elements <= elements_max(rows, self.size())).then_some(self)
    }

    fn of(codec: &Codec, array: &ArrayRef, depth: usize, search: Search) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let parts = codec.session.array_serialize(array).ok()??;
        let encoding = codec.ids.iter().position(|id| *id == parts.serialized_id)?;
        let mut nodes = Writer::default();
        nodes.u8(u8::try_from(encoding).ok()?);
        nodes.varint(parts.metadata.len() as u64);
        nodes.raw(&parts.metadata);
        nodes.varint(parts.buffers.len() as u64);
        for buffer in &parts.buffers {
            // Some encodings ask for alignment to a cache line or more; none needs it.
            let exponent = buffer.alignment().exponent().min(ALIGNMENT.ilog2() as u8);
            nodes.varint((buffer.len() as u64) << 3 | u64::from(exponent));
        }
        nodes.varint(parts.children.len() as u64);
        let exponents = array.as_opt::<ALP>().map(|floats| floats.exponents());
        let found = Hint { encodings: 1 << encoding, exponents };
        let mut tree = Self { nodes: nodes.finish(), buffers: parts.buffers, elements: array.len(), found };
        for child in &parts.children {
            tree.append(Self::of(codec, child, depth, search)?);
        }
        if search.only.is_some_and(|only| only.encodings & STEPS_BIT == 0) {
            return Some(tree);
        }
        match Self::steps(codec, array, depth, search) {
            // Summing the steps takes time, so it must be worth it.
            Some(steps) if steps.size() < tree.size() / 4 * 3 => Some(steps),
            _ => Some(tree),
        }
    }

    /// The array as steps, if it ascends.
    fn steps(codec: &Codec, array: &ArrayRef, depth: usize, search: Search) -> Option<Self> {
        if array.len() < STEPS_MIN || !array.dtype().is_int() || array.dtype().is_nullable() {
            return None;
        }
        let array = array.clone().execute::<PrimitiveArray>(&mut codec.context()).ok()?;
        #[expect(clippy::unnecessary_cast, reason = "one of the types that the macro writes out is u64 itself")]
        let (first, steps) = match_each_integer_ptype!(array.ptype(), |T| {
            let values = array.as_slice::<T>();
            if !values.is_sorted() {
                return None;
            }
            // In two's complement, the distance is right even if the difference overflows.
            let steps = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
            (values[0] as u64, PrimitiveArray::from_iter(steps))
        });
        let steps = steps.reinterpret_cast(array.ptype().to_unsigned()).into_array();
        // Steps of steps are not tried.
        let search = Search { only: search.only.map(Hint::below_steps), ..search };
        let steps = Self::of(codec, &codec.compress(&steps, search)?, depth, search)?;
        let mut nodes = Writer::default();
        nodes.u8(STEPS);
        nodes.varint(8);
        nodes.raw(&first.to_le_bytes());
        nodes.varint(0);
        nodes.varint(1);
        let (nodes, elements) = (nodes.finish(), array.len());
        let mut tree = Self { nodes, buffers: Vec::new(), elements, found: Hint::STEPS };
        tree.append(steps);
        Some(tree)
    }

    fn append(&mut self, child: Self) {
        self.nodes.extend_from_slice(&child.nodes);
        self.buffers.extend(child.buffers);
        self.elements = self.elements.max(child.elements);
        self.found.encodings |= child.found.encodings;
    }

    /// Its size in bytes, without padding.
    pub(in crate::segment) fn size(&self) -> usize {
        self.nodes.len() + self.buffers.iter().map(ByteBuffer::len).sum::<usize>()
    }

    pub(in crate::segment) fn write(&self, out: &mut Writer) {
        out.found.encodings |= self.found.encodings;
        out.found.exponents = out.found.exponents.or(self.found.exponents);
        out.raw(&self.nodes);
        for buffer in &self.buffers {
            out.buffer(buffer);
        }
    }
}

/// The maximum length of a child of an array of `rows` in `bytes`. Damaged lengths must not make a decoder allocate
/// without bound; [`ArrayTree::compress`] refuses the rare array that breaks the rule.
fn elements_max(rows: usize, bytes: usize) -> usize {
    rows.saturating_add(bytes).saturating_mul(64).saturating_add(4096)
}

/// Reads what [`ArrayTree::write`] wrote: an array of `rows` elements of `dtype`, still encoded.
pub(in crate::segment) fn read(codec: &Codec, input: &mut Reader, dtype: &DType, rows: usize) -> Result<ArrayRef> {
    let size = input.left();
    let mut node = ArrayNode::read(input, DEPTH_MAX)?;
    node.read_buffers(input)?;
    let scope = Scope { codec, elements_max: elements_max(rows, size) };
    scope.decode(&node, dtype, rows).map_err(refused)
}

/// A node as read from the bytes.
struct ArrayNode {
    encoding: u8,
    metadata: Bytes,
    shapes: Vec<usize>,
    buffers: Vec<BufferHandle>,
    children: Vec<ArrayNode>,
}

impl ArrayNode {
    fn read(input: &mut Reader, depth: usize) -> Result<Self> {
        let depth =
            depth.checked_sub(1).ok_or_else(|| Error::corrupt("the encodings of a segment are nested too deeply"))?;
        let encoding = input.u8()?;
        input.found.encodings |=
            if encoding == STEPS { STEPS_BIT } else { 1_u64.checked_shl(encoding.into()).unwrap_or(0) };
        let metadata = input.count()?;
        let metadata = input.raw(metadata)?;
        let shapes = (0..input.count()?).map(|_| input.count()).collect::<Result<_>>()?;
        let children = (0..input.count()?).map(|_| Self::read(input, depth)).collect::<Result<_>>()?;
        Ok(Self { encoding, metadata, shapes, buffers: Vec::new(), children })
    }

    fn read_buffers(&mut self, input: &mut Reader) -> Result<()> {
        for shape in &self.shapes {
            let alignment = 1 << (shape & 7);
            if alignment > ALIGNMENT {
                return Err(Error::corrupt(format!(
                    "a buffer is aligned to {alignment} bytes, more than a segment allows"
                )));
            }
            let bytes = ByteBuffer::from(input.buffer(shape >> 3)?);
            self.buffers.push(BufferHandle::new_host(bytes.aligned(Alignment::new(alignment))));
        }
        self.children.iter_mut().try_for_each(|child| child.read_buffers(input))
    }
}

/// What all nodes share while one tree is decoded.
#[derive(Clone, Copy)]
struct Scope<'a> {
    codec: &'a Codec,
    elements_max: usize,
}

impl Scope<'_> {
    fn decode(self, node: &ArrayNode, dtype: &DType, len: usize) -> VortexResult<ArrayRef> {
        vortex_ensure!(len <= self.elements_max, "{len} elements are more than a segment can hold");
        if node.encoding == STEPS {
            return self.decode_steps(node, dtype, len);
        }
        let Some(id) = self.codec.ids.get(usize::from(node.encoding)) else {
            vortex_bail!("encoding {} is not known", node.encoding);
        };
        let plugin = self.codec.session.arrays().registry().get(id);
        let plugin = plugin.ok_or_else(|| vortex_err!("encoding {id} is not registered"))?;
        let children = Children { scope: self, nodes: &node.children };
        let parts = ArrayDeserialization::new(*id, dtype, len, &node.metadata, &node.buffers, &children);
        let array = plugin.deserialize(parts, &self.codec.session)?;
        vortex_ensure!(
            array.len() == len && array.dtype() == dtype,
            "{id} has {} values of {}; expected {len} of {dtype}",
            array.len(),
            array.dtype()
        );
        Ok(array)
    }

    fn decode_steps(self, node: &ArrayNode, dtype: &DType, len: usize) -> VortexResult<ArrayRef> {
        let ptype = PType::try_from(dtype)?;
        let (Ok(first), [child]) = (<[u8; 8]>::try_from(&node.metadata[..]), &node.children[..]) else {
            vortex_bail!(
                "steps have {} bytes of metadata and {} children; expected 8 bytes and 1 child",
                node.metadata.len(),
                node.children.len()
            );
        };
        vortex_ensure!(len > 0 && ptype.is_int() && !dtype.is_nullable(), "steps cannot hold {len} values of {dtype}");
        let unsigned = ptype.to_unsigned();
        let steps = self.decode(child, &DType::Primitive(unsigned, Nullability::NonNullable), len - 1)?;
        let steps = steps.execute::<PrimitiveArray>(&mut self.codec.context())?;
        let values = match_each_unsigned_integer_ptype!(unsigned, |T| {
            let mut last = u64::from_le_bytes(first) as T;
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

/// Children are decoded when their parent asks for them, because only the parent knows their types and lengths.
struct Children<'a> {
    scope: Scope<'a>,
    nodes: &'a [ArrayNode],
}

impl ArrayChildren for Children<'_> {
    fn get(&self, index: usize, dtype: &DType, len: usize) -> VortexResult<ArrayRef> {
        let node = self.nodes.get(index).ok_or_else(|| vortex_err!("child {index} of {} is missing", self.len()))?;
        self.scope.decode(node, dtype, len)
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }
}
