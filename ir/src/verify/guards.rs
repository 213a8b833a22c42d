//! Guards: elements that a masked id leaves without a value pass through arithmetic and views until a reduction or
//! product under the same mask takes them, or a write under the same ids.
//!
//! The check follows whole values, not elements: a value is guarded by the ids that selected it. Views of ids are the
//! same mask; a concatenation of guarded values matches the concatenation of their ids, part by part. The evaluator
//! checks every element beside.

use std::collections::HashMap;

use super::Facts;
use crate::entity::Entity;
use crate::fault::Fault;
use crate::graph::{Graph, Value};
use crate::op::{Op, Type};

/// What masks elements of a value: a row of [`Guards`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Guard(pub u32);

impl Guard {
    /// Every element has a value.
    pub const NONE: Guard = Guard(u32::MAX);
}

/// What a guard stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Root {
    /// The ids that this value holds.
    Ids(Value),
    /// Parts with guards of their own, one behind the other; at least two of them differ.
    Concat(Vec<Guard>),
}

/// Levels of concatenations in each other.
const MOST_LEVELS: usize = 2;

/// The guards of a graph, each once.
#[derive(Clone, Default, Debug)]
pub struct Guards {
    roots: Vec<Root>,
    levels: Vec<usize>,
    ids: HashMap<Root, Guard>,
}

impl Guards {
    /// What a guard stands for; nothing for [`Guard::NONE`].
    pub fn root(&self, guard: Guard) -> Option<&Root> {
        self.roots.get(guard.0 as usize)
    }

    /// Whether a mask takes values of this guard: where one of them is without a value, so is the mask's id masked.
    pub fn covers(&self, mask: Guard, guard: Guard) -> bool {
        if guard == Guard::NONE || mask == guard {
            return true;
        }
        // As deep as concatenations nest; the parts of each level are walked once for each pair.
        match (self.root(mask), self.root(guard)) {
            (Some(Root::Concat(masks)), Some(Root::Concat(guards))) => {
                masks.len() == guards.len() && masks.iter().zip(guards).all(|(&mask, &guard)| self.covers(mask, guard))
            }
            _ => false,
        }
    }

    fn intern(&mut self, root: Root, level: usize) -> Guard {
        if let Some(&guard) = self.ids.get(&root) {
            return guard;
        }
        let guard = Guard(self.roots.len() as u32);
        self.roots.push(root.clone());
        self.levels.push(level);
        self.ids.insert(root, guard);
        guard
    }

    fn ids(&mut self, ids: Value) -> Guard {
        self.intern(Root::Ids(ids), 0)
    }

    /// The guard of parts one behind the other.
    fn concat(&mut self, parts: Vec<Guard>) -> Result<Guard, String> {
        if parts.iter().all(|part| *part == parts[0]) {
            return Ok(parts[0]);
        }
        let level = 1 + parts.iter().filter_map(|part| self.levels.get(part.0 as usize)).max().copied().unwrap_or(0);
        if level > MOST_LEVELS {
            return Err("guarded values are concatenated too often".into());
        }
        Ok(self.intern(Root::Concat(parts), level))
    }
}

/// Finds the guard of every value and faults uses of what may have no value.
pub(super) fn check(graph: &Graph, facts: &mut Facts) -> Result<(), Fault> {
    for v in graph.values() {
        let mut walk = Walk { graph, facts, args: graph.args(v) };
        let found = walk.guard(v).and_then(|guard| Ok((guard, walk.root(v)?)));
        let (guard, root) = found.map_err(|what| Fault::at(graph, v, what))?;
        facts.guard.push(guard);
        facts.root.push(root);
    }
    for row in graph.outputs {
        if facts.guard[row.value.index()] != Guard::NONE {
            let name = graph.name(row.name);
            return Err(Fault::at(graph, row.value, format!("output `{name}` may have elements without a value")));
        }
    }
    Ok(())
}

/// One value, its operands' guards known.
struct Walk<'a> {
    graph: &'a Graph<'a>,
    facts: &'a mut Facts,
    args: &'a [Value],
}

impl Walk<'_> {
    fn of(&self, arg: usize) -> Guard {
        self.facts.guard[self.args[arg].index()]
    }

    fn root_of(&self, arg: usize) -> Guard {
        self.facts.root[self.args[arg].index()]
    }

    /// What ids are as a mask: views keep it.
    fn root(&mut self, v: Value) -> Result<Guard, String> {
        if self.graph.ty(v) != Type::ID {
            return Ok(Guard::NONE);
        }
        match self.graph.op(v) {
            op if op.is_view() => Ok(self.root_of(0)),
            Op::Concat => {
                let parts = (0..self.args.len()).map(|i| self.root_of(i)).collect();
                self.facts.guards.concat(parts)
            }
            _ => Ok(self.facts.guards.ids(v)),
        }
    }

    fn guard(&mut self, v: Value) -> Result<Guard, String> {
        match self.graph.op(v) {
            Op::Weight | Op::Const | Op::Tokens | Op::Extent | Op::Iota | Op::Read => Ok(Guard::NONE),
            Op::Map => self.merged(0..self.args.len()),
            Op::Quantise | Op::Widen | Op::Reshape | Op::Slice | Op::Permute | Op::Broadcast => Ok(self.of(0)),
            Op::Reduce => self.taken(1),
            Op::Product => self.taken(2),
            Op::Concat => {
                let parts = (0..self.args.len()).map(|i| self.of(i)).collect();
                self.facts.guards.concat(parts)
            }
            Op::Gather => self.gathered(),
            Op::TopK => self.top_k(),
            Op::ArgMax | Op::SortIds => self.unguarded(0, "operand 0").map(|()| Guard::NONE),
            Op::Write => self.write(),
        }
    }

    fn unguarded(&self, arg: usize, what: &str) -> Result<(), String> {
        match self.of(arg) {
            Guard::NONE => Ok(()),
            _ => Err(format!("{what}, {}, may have elements without a value", self.args[arg])),
        }
    }

    /// The one guard of some operands.
    fn merged(&self, args: impl Iterator<Item = usize>) -> Result<Guard, String> {
        let mut merged = (Guard::NONE, 0);
        for arg in args {
            match self.of(arg) {
                Guard::NONE => {}
                guard if merged.0 == Guard::NONE || merged.0 == guard => merged = (guard, arg),
                _ => return Err(self.differ(merged.1, arg)),
            }
        }
        Ok(merged.0)
    }

    fn differ(&self, one: usize, other: usize) -> String {
        format!("{} and {} have no value under different masks", self.args[one], self.args[other])
    }

    /// The operands before the mask, less the guards that it covers.
    fn taken(&mut self, operands: usize) -> Result<Guard, String> {
        if self.args.len() == operands {
            return self.merged(0..operands);
        }
        self.unguarded(operands, "the mask")?;
        let mask = self.root_of(operands);
        let left = (0..operands).filter(|&i| !self.facts.guards.covers(mask, self.of(i)));
        self.merged(left)
    }

    fn gathered(&mut self) -> Result<Guard, String> {
        self.unguarded(1, "the ids")?;
        match (self.of(0), self.root_of(1)) {
            (guard, Guard::NONE) => Ok(guard),
            (source, ids) if source == Guard::NONE || source == ids => Ok(ids),
            _ => Err(self.differ(0, 1)),
        }
    }

    fn top_k(&mut self) -> Result<Guard, String> {
        let mask = match self.args.len() {
            2 => self.unguarded(1, "the candidates").map(|()| self.root_of(1))?,
            _ => Guard::NONE,
        };
        if !self.facts.guards.covers(mask, self.of(0)) {
            self.unguarded(0, "operand 0")?;
        }
        Ok(Guard::NONE)
    }

    fn write(&mut self) -> Result<Guard, String> {
        self.unguarded(1, "the ids")?;
        if !self.facts.guards.covers(self.root_of(1), self.of(2)) {
            self.unguarded(2, "the rows")?;
        }
        Ok(Guard::NONE)
    }
}
