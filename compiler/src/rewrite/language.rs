//! Terms as egg takes them: a label and children. What a label means, its stratum knows.

use std::collections::HashMap;

use egg::{Id, Language};

/// A graph of equal terms.
pub type Equal = egg::EGraph<Node, ()>;

/// A label on children.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node {
    /// What the children are operands of.
    pub label: u32,
    /// Operands.
    pub children: Vec<Id>,
}

impl Node {
    /// A node.
    pub fn new(label: u32, children: Vec<Id>) -> Node {
        Node { label, children }
    }
}

impl Language for Node {
    type Discriminant = (u32, usize);

    fn discriminant(&self) -> Self::Discriminant {
        (self.label, self.children.len())
    }

    fn matches(&self, other: &Self) -> bool {
        self.discriminant() == other.discriminant()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

/// An empty graph that remembers why terms are equal.
pub fn empty() -> Equal {
    Equal::default().with_explanations_enabled().without_explanation_length_optimization()
}

/// The classes, ascending, so that nothing depends on the order of a table.
pub fn classes(equal: &Equal) -> Vec<Id> {
    let mut ids: Vec<Id> = equal.classes().map(|class| class.id).collect();
    ids.sort();
    ids
}

/// For each class the place of the node of its first source; 0 where it has none. Sources come in the order of their use,
/// so this choice needs no class to need itself.
pub fn given(equal: &Equal, sources: &[Id], classes: &[Id]) -> Vec<usize> {
    let mut first: HashMap<Id, Id> = HashMap::new();
    for &source in sources {
        first.entry(equal.find(source)).or_insert(source);
    }
    let place = |class: &Id| {
        let source = first.get(class)?;
        let node = equal.id_to_node(*source).clone().map_children(|child| equal.find(child));
        equal[*class].nodes.iter().position(|other| *other == node)
    };
    classes.iter().map(|class| place(class).unwrap_or(0)).collect()
}

/// A term that is to be made: a class as it is, or a label on terms.
#[derive(Clone, Debug)]
pub enum Built {
    /// Any term of this class; it stands for itself.
    Term(Id),
    /// A label on terms.
    Node(u32, Vec<Built>),
}

impl Built {
    /// Makes the term and gives the id that stands for this very term.
    pub fn add(&self, equal: &mut Equal) -> Id {
        match self {
            Built::Term(id) => *id,
            Built::Node(label, children) => {
                let children = children.iter().map(|child| child.add(equal)).collect();
                equal.add_uncanonical(Node::new(*label, children))
            }
        }
    }
}
