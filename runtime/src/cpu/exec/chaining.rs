//! Which kernels of an entry point become chains.

use std::collections::BTreeMap;

use ds4_ir::Value;

use super::chain::Chain;
use super::chain_builder::ChainBuilder;
use super::entry::{Prepared, Work};
use super::scalar_program::ConstantPool;
use super::wire::Wiring;

/// Columns at most at which a value alone is a chain: with more of them a kernel has whole vectors by itself.
const FEW_COLUMNS: usize = 8;

/// Kernels in order, and who reads what they store.
pub(crate) struct Chaining<'b, 'a> {
    wiring: &'b mut Wiring<'a>,
    pool: &'b mut ConstantPool,
    kernels: &'b [Prepared],
    /// First and last kernel that reads each value, be it through views; outputs and what lasts are read for ever.
    readers: BTreeMap<Value, (usize, usize)>,
}

impl<'b, 'a> Chaining<'b, 'a> {
    pub(crate) fn new(
        wiring: &'b mut Wiring<'a>,
        pool: &'b mut ConstantPool,
        kernels: &'b [Prepared],
        lasting: &[Value],
    ) -> Self {
        let graph = wiring.graph;
        let mut is_computed = vec![false; graph.len()];
        kernels.iter().for_each(|prepared| is_computed[prepared.value.0 as usize] = true);
        let mut readers = BTreeMap::new();
        let mut read = |v: Value, at: usize| {
            let mut stack = vec![v];
            while let Some(v) = stack.pop() {
                match is_computed[v.0 as usize] {
                    true => {
                        let (first, last) = readers.entry(v).or_insert((at, at));
                        (*first, *last) = (at.min(*first), at.max(*last));
                    }
                    false => stack.extend(graph.args(v)),
                }
            }
        };
        for (at, prepared) in kernels.iter().enumerate() {
            graph.args(prepared.value).iter().for_each(|&v| read(v, at));
        }
        graph.outputs.iter().for_each(|row| read(row.value, usize::MAX));
        lasting.iter().for_each(|&v| read(v, usize::MAX));
        Chaining { wiring, pool, kernels, readers }
    }

    /// All work, the longest chains first found.
    pub(crate) fn work(mut self) -> (Vec<Work>, Vec<Chain>) {
        let order: Vec<usize> = (0..self.kernels.len()).filter(|&at| !self.is_void(at)).collect();
        let (mut work, mut chains) = (Vec::new(), Vec::new());
        let mut rest = &order[..];
        while let Some((&first, behind)) = rest.split_first() {
            match self.longest(rest) {
                Some((chain, count)) => {
                    work.push(Work::Chain(chains.len()));
                    chains.push(chain);
                    rest = &rest[count..];
                }
                None => {
                    work.push(Work::Kernel(first));
                    rest = behind;
                }
            }
        }
        (work, chains)
    }

    /// Whether a kernel stores what its readers find elsewhere.
    fn is_void(&self, at: usize) -> bool {
        let v = self.kernels[at].value;
        let is_kept = self.readers.get(&v).is_some_and(|&(_, last)| last == usize::MAX);
        !is_kept && self.wiring.in_checkpoint(v).is_some()
    }

    /// The longest chain of the first ones of these kernels, and how many they are.
    fn longest(&mut self, order: &[usize]) -> Option<(Chain, usize)> {
        let mut count = order.len();
        loop {
            let mut builder = ChainBuilder::new(self.wiring, self.pool);
            let values = order[..count].iter().map(|&at| self.kernels[at].value);
            count = values.take_while(|&v| builder.add(v)).count();
            let range = order[0]..=*order[..count].last()?;
            let readers = &self.readers;
            let is_read = |v| readers.get(&v).is_some_and(|(a, b)| !range.contains(a) || !range.contains(b));
            match builder.finish(is_read) {
                Ok(chain) => {
                    let few = self.wiring.extents.largest(chain.columns) <= FEW_COLUMNS;
                    return (count > 1 || few).then_some((chain, count));
                }
                Err(v) => {
                    let kernels = order[..count].iter();
                    count = kernels.take_while(|&&at| self.kernels[at].value != v).count();
                }
            }
        }
    }
}
