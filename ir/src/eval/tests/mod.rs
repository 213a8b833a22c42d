//! Small graphs, each with its result worked out by hand or by an independent formula.

mod absence;
mod operations;
mod products;
mod steps;
mod trees;

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Evaluator, Fault, States, Tensor, WeightSource};
use crate::formats::WeightRow;
use crate::graph::{Graph, GraphTables, Value, Weight};
use crate::{Builder, Format, Op, ScalarOp, ScalarType, Shape, Step, Type};

/// A checkpoint in memory.
#[derive(Default)]
pub(crate) struct Memory {
    tensors: Vec<Stored>,
}

struct Stored {
    format: Format,
    row_bytes: usize,
    data: Vec<u8>,
    scales: Vec<u8>,
}

impl Memory {
    /// Adds a tensor whose rows have `row_bytes` bytes; E8M0 scales, where needed, are all 1.
    pub fn add(&mut self, format: Format, row_bytes: usize, data: Vec<u8>) {
        let scales = vec![127; row_bytes * format.block_len()];
        self.tensors.push(Stored { format, row_bytes, data, scales });
    }

    pub fn add_floats(&mut self, row_len: usize, values: &[f32]) {
        let data = bytemuck::cast_slice(values).to_vec();
        self.add(Format::F32, 4 * row_len, data);
    }

    /// Bytes from a generator for every weight of a graph whose size is within reason.
    pub fn random(graph: &Graph, seed: u64) -> Memory {
        let mut memory = Memory::default();
        let mut random = Random(seed);
        let step = Step { position: 0, columns: 1, outputs: 0 };
        for row in graph.weights {
            let extents = graph.extents(row.shape, step);
            let format = row.ty.format().unwrap_or(Format::F32);
            let row_bytes = extents.last().and_then(|&n| format.row_bytes(n)).unwrap_or(0);
            let bytes =
                super::tensor::count(&extents[..extents.len().max(1) - 1]).saturating_mul(row_bytes).min(1 << 16);
            let data = (0..bytes).map(|_| random.next() as u8).collect();
            memory.add(format, row_bytes.min(1 << 16), data);
        }
        memory
    }
}

impl WeightSource for Memory {
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>> {
        let stored = self.tensors.get(weight.0 as usize)?;
        let start = row.checked_mul(stored.row_bytes)?;
        Some(WeightRow {
            format: stored.format,
            data: stored.data.get(start..start.checked_add(stored.row_bytes)?)?,
            scales: &stored.scales,
            scale_cols: 1,
        })
    }
}

/// A plain generator (xorshift).
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    /// A float between -1 and 1.
    pub fn float(&mut self) -> f32 {
        self.next() as i32 as f32 / 2_147_483_648.0
    }
}

/// A step of one column at position 0.
pub(crate) const FIRST: Step = Step { position: 0, columns: 1, outputs: 1 };

/// Evaluates values of a verified graph in a step whose tokens are all 7.
pub(crate) fn run_step(
    tables: &GraphTables,
    memory: &Memory,
    states: &mut States,
    step: Step,
    wanted: &[Value],
) -> Result<Vec<Tensor>, Fault> {
    let graph = tables.view();
    if let Err(fault) = crate::verify::verify(&graph) {
        panic!("{fault}");
    }
    let tokens = vec![7; step.columns as usize];
    Evaluator::new(graph, memory).step(states, step, &tokens, wanted)
}

/// Evaluates one value of a graph without weights in the first step.
pub(crate) fn run(builder: Builder, wanted: Value) -> Result<Tensor, Fault> {
    run_with(builder, &Memory::default(), wanted)
}

pub(crate) fn run_with(builder: Builder, memory: &Memory, wanted: Value) -> Result<Tensor, Fault> {
    let tables = builder.finish();
    let mut states = States::new(&tables.view());
    let mut results = run_step(&tables, memory, &mut states, FIRST, &[wanted])?;
    Ok(results.remove(0))
}

/// The floats of one value of a graph without weights.
fn floats(builder: Builder, wanted: Value) -> Vec<f32> {
    run(builder, wanted).unwrap().floats().to_vec()
}

/// The words of one value of a graph without weights, as integers: masked ids are -1.
fn ints(builder: Builder, wanted: Value) -> Vec<i32> {
    let words = run(builder, wanted).unwrap();
    words.bits().iter().map(|&w| w as i32).collect()
}

/// A name that no other table has.
fn fresh(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// What small graphs are made of.
pub(crate) trait Small {
    fn shape_of(&mut self, extents: &[u32]) -> Shape;
    fn table_f32(&mut self, extents: &[u32], values: &[f32]) -> Value;
    fn table_i32(&mut self, extents: &[u32], values: &[i32]) -> Value;
    /// Ids of a table in which negative numbers are masked.
    fn table_ids(&mut self, extents: &[u32], values: &[i32]) -> Value;
    fn view(&mut self, op: Op, x: Value, extents: &[u32]) -> Value;
    /// A map of one scalar operation.
    fn apply(&mut self, op: ScalarOp, args: &[Value]) -> Value;
}

impl Small for Builder {
    fn shape_of(&mut self, extents: &[u32]) -> Shape {
        let dims: Vec<_> = extents.iter().map(|&n| self.n(n)).collect();
        self.dims.shape(&dims)
    }

    fn table_f32(&mut self, extents: &[u32], values: &[f32]) -> Value {
        let words: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
        let name = fresh("f");
        let constant = self.add_constant(&name, Type::F32, extents, &words);
        self.constant(constant)
    }

    fn table_i32(&mut self, extents: &[u32], values: &[i32]) -> Value {
        let words: Vec<u32> = values.iter().map(|&x| x as u32).collect();
        let name = fresh("i");
        let constant = self.add_constant(&name, Type::I32, extents, &words);
        self.constant(constant)
    }

    fn table_ids(&mut self, extents: &[u32], values: &[i32]) -> Value {
        let table = self.table_i32(extents, values);
        let x = self.scalars.param(0, ScalarType::I32);
        let zero = self.scalars.i32(0);
        let negative = self.scalars.op(ScalarOp::LtI, &[x, zero]).unwrap();
        let present = self.scalars.op(ScalarOp::Not, &[negative]).unwrap();
        let id = self.scalars.op(ScalarOp::IdWhere, &[present, x]).unwrap();
        let body = self.scalars.body(&[ScalarType::I32], id).unwrap();
        self.map(body, &[table])
    }

    fn view(&mut self, op: Op, x: Value, extents: &[u32]) -> Value {
        let shape = self.shape_of(extents);
        self.value(op, &[x], &[], Some(shape)).unwrap()
    }

    fn apply(&mut self, op: ScalarOp, args: &[Value]) -> Value {
        let types: Vec<_> = args.iter().map(|&v| self.ty(v).scalar().unwrap()).collect();
        let params: Vec<_> = (0..).zip(&types).map(|(i, &ty)| self.scalars.param(i, ty)).collect();
        let result = self.scalars.op(op, &params).unwrap();
        let body = self.scalars.body(&types, result).unwrap();
        self.map(body, args)
    }
}
