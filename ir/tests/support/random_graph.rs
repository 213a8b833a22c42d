//! Random graphs through the builder, in no order that a text would suggest.

use ds4_ir::graph::Value;
use ds4_ir::{Body, Builder, Dim, DimOp, GraphTables, Op, ReduceKind, Scalar, ScalarOp, ScalarType, Tree, Type};

use super::random::Random;

const NAMES: [&str; 11] = ["layer", "0", "attn.q_a", "attn", "q_a", "", "a b", "q\"\\\n", "ü", "x_1", "v3"];

/// A graph that follows from a seed.
pub fn random_graph(seed: u64) -> GraphTables {
    let mut random = Random(seed);
    let mut maker = Maker { builder: Builder::new(), values: Vec::new(), bodies: Vec::new(), dims: Vec::new() };
    maker.dims(&mut random);
    for _ in 0..random.below(60) {
        maker.step(&mut random);
    }
    maker.builder.finish()
}

struct Maker {
    builder: Builder,
    values: Vec<Value>,
    bodies: Vec<Body>,
    dims: Vec<Dim>,
}

impl Maker {
    fn dims(&mut self, random: &mut Random) {
        let leaves =
            [DimOp::Columns, DimOp::Const(4), DimOp::Outputs, DimOp::Position, DimOp::Const(32), DimOp::Completed(4)];
        for _ in 0..1 + random.below(8) {
            let op = leaves[random.below(leaves.len())];
            self.dims.push(self.builder.dims.dim(op));
        }
        for _ in 0..random.below(10) {
            self.dim(random);
        }
    }

    fn dim(&mut self, random: &mut Random) {
        let (a, b) = (*random.of(&self.dims), *random.of(&self.dims));
        let n = 1 + random.below(9) as u32;
        let op = match random.below(4) {
            0 => DimOp::Add(a, b),
            1 => DimOp::Sub(a, b),
            2 => DimOp::Scale(a, n),
            _ => DimOp::Div(a, n),
        };
        // Constants fold with saturation; a graph holds no such dimension.
        let dim = self.builder.dims.dim(op);
        if self.builder.dims.constant(dim).is_none_or(|n| n < 1 << 20) {
            self.dims.push(dim);
        }
    }

    fn shape(&self, random: &mut Random) -> Vec<Dim> {
        (0..random.below(4)).map(|_| *random.of(&self.dims)).collect()
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(16) {
            0 => self.leaf(random),
            1 => self.body(random),
            2 => {
                let name = NAMES[random.below(NAMES.len())];
                self.builder.enter(name);
            }
            3 => self.builder.leave(ds4_ir::Span(0)),
            4 => {
                let shape = self.shape(random);
                self.builder.dims.shape(&shape);
            }
            5 => {
                self.builder.name(&format!("name {}", random.below(5)));
            }
            6 => self.dim(random),
            7 => self.name(random),
            _ => self.value(random),
        }
    }

    /// Names are unique in a table of leaves, so a number makes them so.
    fn leaf(&mut self, random: &mut Random) {
        let name = format!("{}{}", NAMES[random.below(NAMES.len())], random.next());
        let shape: Vec<u32> = (0..1 + random.below(3)).map(|_| [1, 2, 4, 32][random.below(4)]).collect();
        let count = shape.iter().product::<u32>();
        let words: Vec<u32> = (0..count).map(|_| random.next() as u32).collect();
        let value = match random.below(4) {
            0 => {
                let format = *random.of(&ds4_ir::Format::ALL);
                let weight = self.builder.add_weight(&name, Type::weight(format), &shape);
                self.builder.weight(weight)
            }
            1 => {
                let ty = *random.of(&[Type::F32, Type::I32]);
                let constant = self.builder.add_constant(&name, ty, &shape, &words);
                self.builder.constant(constant)
            }
            _ => {
                let state = self.builder.add_state(&name, Type::F32, &shape);
                self.builder.read(state)
            }
        };
        self.values.push(value);
    }

    fn body(&mut self, random: &mut Random) {
        let types = [ScalarType::F32, ScalarType::I32, ScalarType::Id];
        let params: Vec<ScalarType> = (0..1 + random.below(3)).map(|_| *random.of(&types)).collect();
        let scalars = &mut self.builder.scalars;
        let mut nodes: Vec<Scalar> = Vec::new();
        for _ in 0..1 + random.below(40) {
            match random.below(8) {
                0 => nodes.push(scalars.f32(f32::from_bits(random.next() as u32))),
                1 => nodes.push(scalars.i32(random.next() as i32 >> random.below(32))),
                2 => {
                    let index = random.below(params.len());
                    nodes.push(scalars.param(index as u32, params[index]));
                }
                _ if !nodes.is_empty() => {
                    let op = *random.of(ScalarOp::ALL);
                    let count = op.signature().map_or(0, |(args, _)| args.len());
                    let args: Vec<Scalar> = (0..count).map(|_| *random.of(&nodes)).collect();
                    nodes.extend(scalars.op(op, &args));
                }
                _ => {}
            }
        }
        for &node in nodes.iter().rev() {
            if let Ok(body) = scalars.body(&params, node) {
                self.bodies.push(body);
                return;
            }
        }
    }

    fn name(&mut self, random: &mut Random) {
        if self.values.is_empty() {
            return;
        }
        let name = format!("{}.{}", NAMES[random.below(NAMES.len())], random.next());
        let value = *random.of(&self.values);
        if random.below(3) == 0 { self.builder.output(&name, value) } else { self.builder.tap(&name, value) }
    }

    /// A random operation that fits; what does not fit leaves shapes behind, as failed attempts of passes may.
    fn value(&mut self, random: &mut Random) {
        for _ in 0..20 {
            let op = *random.of(&Op::ALL);
            let (args, attrs, shape) = self.attempt(op, random);
            let shape = shape.map(|dims| self.builder.dims.shape(&dims));
            if let Ok(value) = self.builder.value(op, &args, &attrs, shape)
                && self.builder.dims_of(value).len() <= 4
            {
                self.values.push(value);
                return;
            }
        }
    }

    fn attempt(&self, op: Op, random: &mut Random) -> (Vec<Value>, Vec<u32>, Option<Vec<Dim>>) {
        let count = match op {
            _ if op.is_leaf() || self.values.is_empty() => 0,
            Op::Write => 3,
            Op::Product | Op::Gather => 2,
            Op::Map | Op::Reduce | Op::TopK | Op::Concat => 1 + random.below(2),
            _ => 1,
        };
        let first = if self.values.is_empty() { None } else { Some(*random.of(&self.values)) };
        let args: Vec<Value> = (0..count)
            .map(|i| if i == 0 || random.below(2) == 0 { first.expect("a value") } else { *random.of(&self.values) })
            .collect();
        let of_first = first.map(|v| self.builder.dims_of(v)).unwrap_or_default();
        let mut shape = of_first.clone();
        let axis = random.below(3) as u32;
        let tree = [Tree::Free, Tree::Seq, Tree::Lanes(2), Tree::Lanes(32)][random.below(4)].number();
        let attrs = match op {
            Op::Weight | Op::Const | Op::Read => vec![random.below(4) as u32],
            Op::Extent => vec![random.of(&self.dims).0],
            Op::Iota | Op::Concat => vec![axis],
            Op::Map if self.bodies.is_empty() => vec![0],
            Op::Map => vec![random.of(&self.bodies).0],
            Op::Reduce => vec![*random.of(&[ReduceKind::Sum, ReduceKind::Max]) as u32, tree, axis],
            Op::Product => vec![tree],
            Op::Slice => vec![axis, random.of(&self.dims).0],
            Op::Permute => match of_first.len() {
                2 => vec![1, 0],
                3 => vec![2, 0, 1],
                n => (0..n as u32).collect(),
            },
            Op::Gather => vec![axis, random.below(2) as u32],
            _ => vec![],
        };
        match op {
            Op::Reshape => shape.reverse(),
            Op::Slice | Op::Broadcast | Op::TopK if !shape.is_empty() => {
                let at = if op == Op::TopK { shape.len() - 1 } else { random.below(shape.len()) };
                shape[at] = *random.of(&self.dims);
            }
            _ => {}
        }
        let takes_shape = matches!(op, Op::Iota | Op::Reshape | Op::Slice | Op::Broadcast | Op::TopK);
        (args, attrs, takes_shape.then_some(shape))
    }
}
