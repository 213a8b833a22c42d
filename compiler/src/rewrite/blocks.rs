//! Cutting a graph into blocks that are searched one by one, so that the time stays linear.
//!
//! A cut lies where few values cross, whatever they are called: between two stages of a model there are few.

use ds4_ir::Value;
use ds4_ir::graph::Graph;

/// The needed values in blocks of about `size`, ascending.
pub fn blocks(graph: &Graph<'_>, needed: &[bool], size: usize) -> Vec<Vec<Value>> {
    let values: Vec<Value> = graph.values().filter(|v| needed[v.0 as usize]).collect();
    let crossing = crossing(graph, &values);
    let mut blocks = vec![];
    let mut begin = 0;
    while begin < values.len() {
        let end = match values.len() - begin {
            left if left <= size + size / 2 => values.len(),
            _ => cut(&crossing, begin + size / 2, begin + size + size / 2),
        };
        blocks.push(values[begin..end].to_vec());
        begin = end;
    }
    blocks
}

/// The place in a range at which the fewest values cross, the last of equals.
fn cut(crossing: &[usize], from: usize, to: usize) -> usize {
    (from..=to).min_by_key(|&place| (crossing[place], usize::MAX - place)).unwrap_or(to)
}

/// For each place in the list how many computed values in front of it are used behind it.
fn crossing(graph: &Graph<'_>, values: &[Value]) -> Vec<usize> {
    let mut last_use = vec![0; graph.len()];
    for (place, &v) in values.iter().enumerate() {
        graph.args(v).iter().for_each(|arg| last_use[arg.0 as usize] = place);
    }
    let mut change = vec![0isize; values.len() + 2];
    for (place, &v) in values.iter().enumerate() {
        if !graph.op(v).is_leaf() && last_use[v.0 as usize] > place {
            change[place + 1] += 1;
            change[last_use[v.0 as usize] + 1] -= 1;
        }
    }
    let mut crossing = 0;
    change
        .into_iter()
        .map(|by| {
            crossing += by;
            crossing.unsigned_abs()
        })
        .collect()
}
