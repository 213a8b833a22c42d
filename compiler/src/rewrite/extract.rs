//! Choosing one node of each class so that all that is needed costs least, with shared values counted once.

/// A choice to be made.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// For each class its nodes.
    pub classes: Vec<Vec<Candidate>>,
    /// The classes that are needed.
    pub roots: Vec<usize>,
    /// For each class the node that stands there without any choice.
    pub given: Vec<usize>,
}

/// A node that may be chosen.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it costs beside its operands.
    pub cost: u64,
    /// The classes of its operands.
    pub children: Vec<usize>,
}

/// Most sweeps of improvement.
const SWEEPS: usize = 4;

/// For each class the place of its node; classes that are not needed have any. The given choice if nothing is cheaper.
pub fn choose(problem: &Problem) -> Vec<usize> {
    // Improvement ends where no single change helps, so two starts find more than one.
    let given = improved(problem, problem.given.clone());
    let found = improved(problem, bottom_up(problem));
    let cost = |choice: &[usize]| total(problem, choice).unwrap_or(u64::MAX);
    if cost(&given) <= cost(&found) { given } else { found }
}

/// The cost of a choice; nothing if it is circular.
fn total(problem: &Problem, choice: &[usize]) -> Option<u64> {
    let order = needed(problem, choice)?;
    Some(order.iter().fold(0u64, |sum, &class| sum.saturating_add(problem.classes[class][choice[class]].cost)))
}

/// The classes that a choice needs, operands first; nothing if it is circular.
pub fn needed(problem: &Problem, choice: &[usize]) -> Option<Vec<usize>> {
    let mut walk = Walk { problem, choice, state: vec![0; problem.classes.len()], order: vec![] };
    problem.roots.iter().all(|&root| walk.visit(root)).then_some(walk.order)
}

struct Walk<'a> {
    problem: &'a Problem,
    choice: &'a [usize],
    /// 0 not seen, 1 entered, 2 done.
    state: Vec<u8>,
    order: Vec<usize>,
}

impl Walk<'_> {
    /// Whether nothing below depends on itself. The stack is explicit: graphs are deep.
    fn visit(&mut self, root: usize) -> bool {
        let mut stack = vec![(root, 0)];
        while let Some((class, next)) = stack.pop() {
            if next == 0 {
                match self.state[class] {
                    0 => self.state[class] = 1,
                    1 => return false,
                    _ => continue,
                }
            }
            let children = &self.problem.classes[class][self.choice[class]].children;
            match children.get(next) {
                Some(&child) => {
                    stack.push((class, next + 1));
                    match self.state[child] {
                        0 => stack.push((child, 0)),
                        1 => return false,
                        _ => {}
                    }
                }
                None => {
                    self.state[class] = 2;
                    self.order.push(class);
                }
            }
        }
        true
    }
}

/// A set of classes.
#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn empty(len: usize) -> Set {
        Set(vec![0; len.div_ceil(64)])
    }

    fn add(&mut self, class: usize) {
        self.0[class / 64] |= 1 << (class % 64);
    }

    fn has(&self, class: usize) -> bool {
        self.0[class / 64] >> (class % 64) & 1 == 1
    }

    fn join(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// The best node of each class, seen from that class alone: costs of all that it needs, each once.
fn bottom_up(problem: &Problem) -> Vec<usize> {
    let len = problem.classes.len();
    let mut best: Vec<Option<(u64, Set)>> = vec![None; len];
    let mut choice = problem.given.clone();
    loop {
        let mut changed = false;
        for class in 0..len {
            for (place, candidate) in problem.classes[class].iter().enumerate() {
                let Some(set) = reached(class, candidate, &best, len) else { continue };
                let cost = (0..len).filter(|&c| set.has(c)).fold(0u64, |sum, c| {
                    let own = if c == class { candidate.cost } else { problem.classes[c][choice[c]].cost };
                    sum.saturating_add(own)
                });
                if best[class].as_ref().is_none_or(|(least, _)| cost < *least) {
                    (best[class], choice[class], changed) = (Some((cost, set)), place, true);
                }
            }
        }
        if !changed {
            return choice;
        }
    }
}

/// What a node needs, itself included; nothing if a child has no term yet or the class would need itself.
fn reached(class: usize, candidate: &Candidate, best: &[Option<(u64, Set)>], len: usize) -> Option<Set> {
    let mut set = Set::empty(len);
    for &child in &candidate.children {
        set.join(&best[child].as_ref()?.1);
    }
    if set.has(class) {
        return None;
    }
    set.add(class);
    Some(set)
}

/// Changes single classes, and all that can use one class together, as long as the total falls.
fn improved(problem: &Problem, mut choice: Vec<usize>) -> Vec<usize> {
    let Some(mut least) = total(problem, &choice) else { return problem.given.clone() };
    let open: Vec<usize> = (0..problem.classes.len()).filter(|&class| problem.classes[class].len() > 1).collect();
    for _ in 0..SWEEPS {
        let before = least;
        let mut is_used = used(problem, &choice);
        for &class in &open {
            for place in 0..problem.classes[class].len() {
                // What nobody needs costs nothing, whichever it is.
                if place == choice[class] || !is_used[class] {
                    continue;
                }
                let last = std::mem::replace(&mut choice[class], place);
                match total(problem, &choice) {
                    Some(cost) if cost < least => {
                        least = cost;
                        is_used = used(problem, &choice);
                    }
                    _ => choice[class] = last,
                }
            }
        }
        for shared in shared(problem, &open) {
            let together = using(problem, &open, &choice, shared);
            if let Some(cost) = total(problem, &together).filter(|&cost| cost < least) {
                (least, choice) = (cost, together);
            }
        }
        if least == before {
            break;
        }
    }
    choice
}

/// Whether a choice needs each class.
fn used(problem: &Problem, choice: &[usize]) -> Vec<bool> {
    let mut used = vec![false; problem.classes.len()];
    needed(problem, choice).into_iter().flatten().for_each(|class| used[class] = true);
    used
}

/// Classes that several others may use or not.
fn shared(problem: &Problem, open: &[usize]) -> Vec<usize> {
    let mut users = vec![0; problem.classes.len()];
    for &class in open {
        let mut children: Vec<usize> = problem.classes[class].iter().flat_map(|node| node.children.clone()).collect();
        children.sort_unstable();
        children.dedup();
        children.into_iter().for_each(|child| users[child] += 1);
    }
    (0..users.len()).filter(|&class| users[class] > 1).collect()
}

/// The choice with all that can use a class using it.
fn using(problem: &Problem, open: &[usize], choice: &[usize], shared: usize) -> Vec<usize> {
    let mut choice = choice.to_vec();
    for &class in open {
        let place = problem.classes[class].iter().position(|node| node.children.contains(&shared));
        choice[class] = place.unwrap_or(choice[class]);
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(cost: u64) -> Candidate {
        Candidate { cost, children: vec![] }
    }

    fn on(cost: u64, children: &[usize]) -> Candidate {
        Candidate { cost, children: children.to_vec() }
    }

    /// Two readers share an operand: a tree's cost would count it twice and choose the other node.
    #[test]
    fn shared_values_count_once() {
        let classes =
            vec![vec![leaf(10)], vec![on(1, &[0]), leaf(8)], vec![on(1, &[0]), leaf(8)], vec![on(1, &[1, 2])]];
        let problem = Problem { classes, roots: vec![3], given: vec![0, 1, 1, 0] };
        let choice = choose(&problem);
        assert_eq!(total(&problem, &choice), Some(13));
        assert_eq!(&choice[1..3], &[0, 0]);
    }

    /// What is needed anyway makes the node that uses it cheap.
    #[test]
    fn other_roots_count() {
        let classes = vec![vec![leaf(10)], vec![on(1, &[0]), leaf(8)]];
        let alone = Problem { classes: classes.clone(), roots: vec![1], given: vec![0, 0] };
        assert_eq!(choose(&alone)[1], 1);
        let beside = Problem { classes, roots: vec![0, 1], given: vec![0, 1] };
        assert_eq!(choose(&beside)[1], 0);
    }

    #[test]
    fn circles_are_no_choice_and_ties_stay_as_given() {
        let classes = vec![vec![leaf(5), on(0, &[1])], vec![on(0, &[0]), leaf(5)]];
        let problem = Problem { classes, roots: vec![0, 1], given: vec![0, 0] };
        let choice = choose(&problem);
        assert_eq!(total(&problem, &choice), Some(5));
        assert_eq!(choice, vec![0, 0]);
        assert_eq!(total(&problem, &[1, 0]), None);
    }
}
