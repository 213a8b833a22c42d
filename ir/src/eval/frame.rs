//! One step: values computed in the order of their ids and dropped after their last use.

use std::sync::Arc;

use super::product::{Product, quantise, widen};
use super::states::States;
use super::tensor::{Data, Tensor, count};
use super::weights::Rows;
use super::{Evaluator, Fault, reduce, select, views, write};
use crate::dim::{Dim, DimOp, DimRow, Step};
use crate::graph::{Graph, State, Value, Weight};
use crate::op::{Op, ReduceKind, Type};
use crate::tree::Tree;

/// New words of the states that a step wrote.
type Written = Vec<(State, Arc<Vec<u32>>)>;

/// A step in progress.
pub(super) struct Frame<'e, 'g> {
    evaluator: &'e Evaluator<'g>,
    graph: Graph<'g>,
    states: &'e States,
    tokens: &'e [u32],
    /// Value of each dimension; `None` where it overflows or is negative.
    dims: Vec<Option<u32>>,
    values: Vec<Option<Tensor>>,
    /// Uses of each value that are still to come.
    uses: Vec<u32>,
}

impl<'e, 'g> Frame<'e, 'g> {
    pub fn new(evaluator: &'e Evaluator<'g>, states: &'e States, step: Step, tokens: &'e [u32]) -> Self {
        let graph = evaluator.graph;
        Frame {
            evaluator,
            graph,
            states,
            tokens,
            dims: dim_values(graph.dims, step),
            values: vec![None; graph.len()],
            uses: vec![0; graph.len()],
        }
    }

    /// Computes everything that the wanted values, the outputs and the last versions of the states need.
    pub fn run(mut self, wanted: &[Value]) -> Result<(Vec<Tensor>, Written), Fault> {
        let versions = self.evaluator.last_versions.clone();
        let outputs: Vec<Value> = self.graph.outputs.iter().map(|row| row.value).collect();
        let roots = [wanted, &outputs, &versions.iter().flatten().copied().collect::<Vec<_>>()].concat();
        if let Some(v) = wanted.iter().find(|v| v.0 as usize >= self.graph.len()) {
            return Err(Fault::new(format!("wanted {v} does not exist")));
        }
        self.count_uses(&roots);
        for v in self.graph.values() {
            if self.uses[v.0 as usize] > 0 {
                let tensor = self.compute(v).map_err(|message| Fault::at(&self.graph, v, message))?;
                self.values[v.0 as usize] = Some(tensor);
                self.graph.args(v).iter().for_each(|&arg| self.release(arg));
            }
        }
        for &v in &outputs {
            let checked = self.tensor(v).and_then(|t| t.expect_present("the output"));
            checked.map_err(|message| Fault::at(&self.graph, v, message))?;
        }
        let tensors = wanted.iter().map(|&v| self.tensor(v).map(|t| t.clone().observed()));
        let results: Result<_, String> = tensors.collect();
        Ok((results.map_err(Fault::new)?, self.written(&versions)))
    }

    /// Counts the uses of every value that one of `roots` needs; a root is used once more.
    fn count_uses(&mut self, roots: &[Value]) {
        roots.iter().for_each(|v| self.uses[v.0 as usize] += 1);
        for v in self.graph.values().rev() {
            if self.uses[v.0 as usize] > 0 {
                self.graph.args(v).iter().for_each(|arg| self.uses[arg.0 as usize] += 1);
            }
        }
    }

    fn release(&mut self, v: Value) {
        self.uses[v.0 as usize] -= 1;
        if self.uses[v.0 as usize] == 0 {
            self.values[v.0 as usize] = None;
        }
    }

    fn written(&self, versions: &[Option<Value>]) -> Written {
        let words = |v: &Value| match &self.values[v.0 as usize].as_ref()?.data {
            Data::Words(words) => Some(words.clone()),
            _ => None,
        };
        let versions = versions.iter().enumerate();
        versions.filter_map(|(i, v)| Some((State(i as u32), words(v.as_ref()?)?))).collect()
    }

    fn tensor(&self, v: Value) -> Result<&Tensor, String> {
        self.values[v.0 as usize].as_ref().ok_or_else(|| format!("{v} is not computed"))
    }

    fn dim(&self, dim: Dim) -> Result<usize, String> {
        let value = self.dims[dim.0 as usize].ok_or_else(|| format!("{dim} is negative or overflows in this step"))?;
        Ok(value as usize)
    }

    /// The extents of a value, within the limit of elements.
    fn extents(&self, v: Value) -> Result<Vec<usize>, String> {
        let extents: Vec<usize> = self.graph.dims_of(v).iter().map(|&d| self.dim(d)).collect::<Result<_, _>>()?;
        let held = match self.graph.ty(v).format() {
            Some(_) => count(&extents[..extents.len() - 1]),
            None => count(&extents),
        };
        match held <= self.evaluator.limit {
            true => Ok(extents),
            false => Err(format!("{extents:?} is more than {} elements", self.evaluator.limit)),
        }
    }

    fn rows(&self, x: &Tensor) -> Option<Rows<'g>> {
        match x.data {
            Data::Rows { weight, .. } => {
                Some(Rows { graph: self.graph, source: self.evaluator.weights, weight, len: x.cell_len() })
            }
            _ => None,
        }
    }

    fn compute(&mut self, v: Value) -> Result<Tensor, String> {
        let extents = self.extents(v)?;
        let (op, attrs) = (self.graph.op(v), self.graph.attrs(v));
        if op == Op::Write {
            return self.write(v);
        }
        let args: Vec<&Tensor> = self.graph.args(v).iter().map(|&a| self.tensor(a)).collect::<Result<_, _>>()?;
        let attr = |i: usize| attrs[i] as usize;
        match op {
            Op::Weight => Ok(self.weight(v, extents)),
            Op::Const => {
                let row = &self.graph.constants[attr(0)];
                Ok(Tensor::words(row.ty, extents, row.words.of(self.graph.constant_words).to_vec()))
            }
            Op::Tokens => Ok(Tensor::words(Type::I32, extents, self.tokens.to_vec())),
            Op::Extent => Ok(Tensor::words(Type::I32, extents, vec![self.dim(Dim(attrs[0]))? as u32])),
            Op::Iota => Ok(iota(extents, attr(0))),
            Op::Map => self.map(attr(0), &args, self.graph.ty(v), extents),
            Op::Reduce => {
                let kind = ReduceKind::from_number(attrs[0]).ok_or("unknown kind of reduction")?;
                let mask = args.get(1).copied();
                reduce::reduce(kind, tree(attrs[1])?, attr(2), args[0], mask, extents)
            }
            Op::Product => {
                let (x, w, mask) = (args[0], args[1], args.get(2).copied());
                Product { tree: tree(attrs[0])?, x, w, rows: self.rows(w), mask }.run(extents)
            }
            Op::Quantise => Ok(quantise(args[0], extents)),
            Op::Widen => {
                let rows = self.rows(args[0]).ok_or("operand 0 is no weight")?;
                widen(args[0], &rows, self.graph.ty(v), extents)
            }
            Op::Reshape => views::reshape(args[0], extents),
            Op::Slice => views::slice(args[0], attr(0), self.dim(Dim(attrs[1]))?, extents),
            Op::Permute => Ok(views::permute(args[0], attrs, extents)),
            Op::Broadcast => Ok(views::broadcast(args[0], extents)),
            Op::Concat => Ok(views::concat(&args, attr(0), extents)),
            Op::Gather => views::gather(args[0], args[1], attr(0), attr(1), extents),
            Op::TopK => select::top_k(args[0], args.get(1).copied(), extents),
            Op::ArgMax => select::arg_max(args[0], extents),
            Op::SortIds => select::sort_ids(args[0]),
            Op::Read => {
                let data = Data::Words(self.states.share(State(attrs[0])));
                Ok(Tensor { ty: self.graph.ty(v), extents, data, absent: None })
            }
            Op::Write => Err("a write is handled above".into()),
        }
    }

    fn weight(&self, v: Value, extents: Vec<usize>) -> Tensor {
        let rows = count(&extents[..extents.len() - 1]);
        let rows = Arc::new((0..rows as u32).collect());
        let weight = Weight(self.graph.attrs(v)[0]);
        Tensor { ty: self.graph.ty(v), extents, data: Data::Rows { weight, rows }, absent: None }
    }

    /// An element has no value where one of its operands has none.
    fn map(&self, body: usize, args: &[&Tensor], ty: Type, extents: Vec<usize>) -> Result<Tensor, String> {
        let program = &self.evaluator.programs[body];
        let elements = count(&extents);
        let absent: Vec<bool> = match args.iter().any(|x| x.any_absent()) {
            true => (0..elements).map(|i| args.iter().any(|x| x.is_absent(i))).collect(),
            false => Vec::new(),
        };
        let mut words = Vec::with_capacity(elements);
        let (mut params, mut scratch) = (vec![0; args.len()], Vec::new());
        for i in 0..elements {
            if absent.get(i) == Some(&true) {
                words.push(0);
                continue;
            }
            for (param, x) in params.iter_mut().zip(args) {
                *param = x.bits()[i];
            }
            words.push(program.run(&params, &mut scratch)?);
        }
        Ok(Tensor::words(ty, extents, words).with_absent(absent))
    }

    /// Takes the state's tensor if this is its last use: its words are then replaced in place.
    fn write(&mut self, v: Value) -> Result<Tensor, String> {
        let &[state, ids, rows] = self.graph.args(v) else {
            return Err("a write takes three operands".into());
        };
        let taken = match self.uses[state.0 as usize] {
            1 => self.values[state.0 as usize].take(),
            _ => None,
        };
        let taken = taken.map_or_else(|| self.tensor(state).cloned(), Ok)?;
        write::write(taken, self.tensor(ids)?, self.tensor(rows)?)
    }
}

fn tree(number: u32) -> Result<Tree, String> {
    Tree::from_number(number).ok_or_else(|| format!("{number} is no tree"))
}

fn iota(extents: Vec<usize>, axis: usize) -> Tensor {
    let inner = count(&extents[axis + 1..]);
    let words = (0..count(&extents)).map(|i| (i / inner % extents[axis]) as u32).collect();
    Tensor::words(Type::I32, extents, words)
}

/// The value of every dimension in one step, earlier ones first.
fn dim_values(rows: &[DimRow], step: Step) -> Vec<Option<u32>> {
    let mut values: Vec<Option<u32>> = Vec::with_capacity(rows.len());
    for &row in rows {
        let of = |d: Dim| values[d.0 as usize];
        values.push(match DimOp::of(row) {
            Some(DimOp::Const(n)) => Some(n),
            Some(DimOp::Position) => Some(step.position),
            Some(DimOp::Columns) => Some(step.columns),
            Some(DimOp::Outputs) => Some(step.outputs),
            Some(DimOp::Add(a, b)) => of(a).zip(of(b)).and_then(|(a, b)| a.checked_add(b)),
            Some(DimOp::Sub(a, b)) => of(a).zip(of(b)).and_then(|(a, b)| a.checked_sub(b)),
            Some(DimOp::Scale(a, n)) => of(a).and_then(|a| a.checked_mul(n)),
            Some(DimOp::Div(a, n)) => of(a).and_then(|a| a.checked_div(n)),
            Some(DimOp::Completed(n)) => {
                let end = (step.position + step.columns).checked_div(n);
                end.zip(step.position.checked_div(n)).map(|(end, start)| end - start)
            }
            None => None,
        });
    }
    values
}
