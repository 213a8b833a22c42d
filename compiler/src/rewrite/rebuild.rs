//! The new graph from the chosen terms.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, GraphTables, NamedRow};
use ds4_ir::{Op, Value};

use super::terms::Terms;

/// A graph and for each of its values its term.
pub struct Rebuilt {
    /// The graph.
    pub graph: GraphTables,
    /// The terms.
    pub chosen: Vec<Value>,
}

/// What stands for a source value, and where new terms belong.
#[derive(Default)]
pub struct Choice {
    /// Terms of source values that are not their own terms.
    pub terms: HashMap<Value, Value>,
    /// For chosen terms the first source value that they are equal to.
    pub places: HashMap<Value, Value>,
}

impl Choice {
    fn term(&self, v: Value) -> Value {
        self.terms.get(&v).copied().unwrap_or(v)
    }
}

/// The graph of the chosen terms in the order of the source; `keep` are the values whose equals must exist. Nothing if
/// states cannot be updated in place any more.
pub fn rebuild(graph: &Graph<'_>, terms: &Terms, choice: &Choice, keep: &[Value]) -> Option<Rebuilt> {
    let needs = collect(terms, choice, keep, graph.len());
    let order = order(terms, &needs)?;
    let mut new = Rebuilt { graph: tables_of(graph, terms), chosen: order };
    let place: HashMap<Value, Value> =
        new.chosen.iter().enumerate().map(|(i, &term)| (term, Value(i as u32))).collect();
    for term in new.chosen.clone() {
        let args: Vec<Value> = needs[&term].args.iter().map(|arg| place[arg]).collect();
        push(&mut new.graph, graph, terms, term, needs[&term].place, &args);
    }
    let renamed =
        |rows: &[NamedRow]| rows.iter().map(|row| NamedRow { value: place[&choice.term(row.value)], ..*row }).collect();
    new.graph.named = renamed(graph.named);
    new.graph.outputs = renamed(graph.outputs);
    Some(new)
}

/// What a chosen term takes, and where it belongs.
struct Need {
    args: Vec<Value>,
    place: Value,
}

/// The chosen terms that are needed, with the terms that stand for their operands.
fn collect(terms: &Terms, choice: &Choice, keep: &[Value], source: usize) -> BTreeMap<Value, Need> {
    let mut needs: BTreeMap<Value, Need> = BTreeMap::new();
    let mut stack: Vec<(Value, Value)> = keep.iter().map(|&v| (choice.term(v), v)).collect();
    while let Some((term, asked)) = stack.pop() {
        let own = if (term.0 as usize) < source { Some(term) } else { None };
        let place = choice.places.get(&term).copied().or(own).unwrap_or(asked);
        if let Some(need) = needs.get(&term)
            && need.place <= place
        {
            continue;
        }
        let args: Vec<Value> = terms.args(term).iter().map(|&arg| choice.term(arg)).collect();
        stack.extend(args.iter().map(|&arg| (arg, place)));
        needs.insert(term, Need { args, place });
    }
    needs
}

/// Operands first, then by place; what reads a version of a state comes before the write that replaces it.
fn order(terms: &Terms, needs: &BTreeMap<Value, Need>) -> Option<Vec<Value>> {
    let mut edges: BTreeMap<Value, BTreeSet<Value>> = BTreeMap::new();
    let mut waits: BTreeMap<Value, usize> = needs.keys().map(|&term| (term, 0)).collect();
    let mut edge = |from: Value, to: Value| {
        if edges.entry(from).or_default().insert(to) {
            *waits.entry(to).or_default() += 1;
        }
    };
    for (&term, need) in needs {
        need.args.iter().for_each(|&arg| edge(arg, term));
    }
    for (reader, write) in replaced(terms, needs) {
        edge(reader, write);
    }
    let mut ready: BinaryHeap<Reverse<(Value, Value)>> = BinaryHeap::new();
    ready.extend(waits.iter().filter(|(_, waits)| **waits == 0).map(|(&term, _)| Reverse((needs[&term].place, term))));
    let mut order = vec![];
    while let Some(Reverse((_, term))) = ready.pop() {
        order.push(term);
        for &next in edges.get(&term).into_iter().flatten() {
            let left = waits.get_mut(&next)?;
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse((needs.get(&next)?.place, next)));
            }
        }
    }
    (order.len() == needs.len()).then_some(order)
}

/// Readers of versions of states, each with the write that replaces the version.
fn replaced(terms: &Terms, needs: &BTreeMap<Value, Need>) -> Vec<(Value, Value)> {
    let op = |term: Value| Op::from_number(terms.certificate.term_op[term.0 as usize]);
    let write_of: HashMap<Value, Value> = needs
        .iter()
        .filter(|(term, _)| op(**term) == Some(Op::Write))
        .map(|(&term, need)| (need.args[0], term))
        .collect();
    let mut versions: HashMap<Value, Option<Value>> = HashMap::new();
    needs.keys().for_each(|&term| {
        version(terms, needs, term, &mut versions);
    });
    let mut pairs = vec![];
    for (&term, need) in needs {
        for arg in &need.args {
            let write = versions[arg].and_then(|version| write_of.get(&version));
            pairs.extend(write.filter(|&&write| write != term).map(|&write| (term, write)));
        }
    }
    pairs
}

/// The version of a state that a term shows.
fn version(
    terms: &Terms,
    needs: &BTreeMap<Value, Need>,
    term: Value,
    known: &mut HashMap<Value, Option<Value>>,
) -> Option<Value> {
    let mut path = vec![];
    let mut at = term;
    let found = loop {
        if let Some(&found) = known.get(&at) {
            break found;
        }
        path.push(at);
        match Op::from_number(terms.certificate.term_op[at.0 as usize]) {
            Some(Op::Read | Op::Write) => break Some(at),
            Some(op) if op.is_view() || op == Op::Gather => at = needs[&at].args[0],
            _ => break None,
        }
    };
    known.extend(path.into_iter().map(|term| (term, found)));
    found
}

/// The tables without values: those of the source with what rewriting added.
fn tables_of(graph: &Graph<'_>, terms: &Terms) -> GraphTables {
    let (dims, shape_dims, shapes) = terms.dims.columns();
    let (scalars, bodies, body_params) = terms.scalars.columns();
    GraphTables {
        dims: dims.to_vec(),
        shape_dims: shape_dims.to_vec(),
        shapes: shapes.to_vec(),
        scalars: scalars.to_vec(),
        bodies: bodies.to_vec(),
        body_params: body_params.to_vec(),
        weights: graph.weights.to_vec(),
        constants: graph.constants.to_vec(),
        constant_words: graph.constant_words.to_vec(),
        states: graph.states.to_vec(),
        spans: graph.spans.to_vec(),
        names: graph.names.to_vec(),
        text: graph.text.to_vec(),
        ..GraphTables::default()
    }
}

/// Adds a term; it is of the span of the source value at whose place it stands.
fn push(new: &mut GraphTables, graph: &Graph<'_>, terms: &Terms, term: Value, place: Value, args: &[Value]) {
    let c = &terms.certificate;
    let row = term.0 as usize;
    new.value_op.push(c.term_op[row]);
    new.value_type.push(c.term_type[row]);
    new.value_shape.push(c.term_shape[row]);
    new.value_args.push(Run::push(&mut new.args, args));
    new.value_attrs.push(Run::push(&mut new.attrs, c.term_attrs[row].of(&c.attrs)));
    new.value_span.push(graph.value_span[place.0 as usize]);
}

/// The source graph as it is, with the tables that rewriting added to.
pub fn unchanged(graph: &Graph<'_>, terms: &Terms) -> Rebuilt {
    let tables = GraphTables {
        value_op: graph.value_op.to_vec(),
        value_type: graph.value_type.to_vec(),
        value_shape: graph.value_shape.to_vec(),
        value_args: graph.value_args.to_vec(),
        value_attrs: graph.value_attrs.to_vec(),
        value_span: graph.value_span.to_vec(),
        args: graph.args.to_vec(),
        attrs: graph.attrs.to_vec(),
        named: graph.named.to_vec(),
        outputs: graph.outputs.to_vec(),
        ..tables_of(graph, terms)
    };
    Rebuilt { graph: tables, chosen: graph.values().collect() }
}

/// All terms as a table of values.
pub fn all(graph: &Graph<'_>, terms: &Terms) -> GraphTables {
    let c = &terms.certificate;
    GraphTables {
        value_op: c.term_op.clone(),
        value_type: c.term_type.clone(),
        value_shape: c.term_shape.clone(),
        value_args: c.term_args.clone(),
        value_attrs: c.term_attrs.clone(),
        value_span: c.term_span.clone(),
        args: c.args.clone(),
        attrs: c.attrs.clone(),
        ..tables_of(graph, terms)
    }
}
