//! The cases of the kernel suite: small graphs, a family for each kind of kernel, with inputs that show faults.
//!
//! | family | kernels |
//! |---|---|
//! | `map` | every scalar operation, and formulas that compilers like to change |
//! | `views` | values made from the step, views, `concat`, `gather` |
//! | `states` | `read` and `write` over steps |
//! | `widen` | every storage format, decoded |
//! | `reduce` | every tree, kind and axis, masked and not |
//! | `quantise` | q8 activations |
//! | `product` | every storage format with f32 and q8 activations, gathered experts, attention |
//! | `choose` | `top_k`, `arg_max`, `sort_ids` |
//! | `fused` | values that are computed together |
//!
//! A case is a pure function of its name: the same graph, weights and steps everywhere. What it gives is defined by the
//! evaluator; `golden/kernels` holds hashes of that.

mod bytes;
mod choose;
mod draft;
pub mod fused;
pub mod inputs;
mod map;
mod product;
mod quantise;
mod reduce;
mod states;
mod stored;
mod views;
mod widen;

use ds4_compiler::frame::{Form, Frame, assemble};
use ds4_compiler::fuse::Profile;
use ds4_ir::diagnostic::codes;
use ds4_ir::eval::{Evaluator, Fault, States, Tensor};
use ds4_ir::plan::PlanTables;
use ds4_ir::{Bounds, Diagnostic, GraphTables, Place, Step, Value};
use ds4_kernels::Target;

pub use stored::Stored;

/// A step of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Feed {
    /// Its scalars.
    pub step: Step,
    /// A token for each column.
    pub tokens: Vec<u32>,
}

/// A graph with all that running it needs.
pub struct Case {
    /// Its family.
    pub family: &'static str,
    /// Unique in the family.
    pub name: String,
    /// The graph. Its outputs and named values are what is compared.
    pub graph: GraphTables,
    /// Its weights.
    pub weights: Stored,
    /// Bounds of its steps.
    pub bounds: Bounds,
    /// Its steps, one sequence.
    pub feeds: Vec<Feed>,
    /// Device profiles by which its values are fused, each in a plan of its own; none: every value is a launch.
    pub profiles: &'static [&'static str],
}

/// A family: its name, and what makes its cases.
pub type Family = (&'static str, fn() -> Vec<Case>);

/// The families, in the order of reports.
pub const FAMILIES: [Family; 9] = [
    (map::FAMILY, map::cases),
    (views::FAMILY, views::cases),
    (states::FAMILY, states::cases),
    (widen::FAMILY, widen::cases),
    (reduce::FAMILY, reduce::cases),
    (quantise::FAMILY, quantise::cases),
    (product::FAMILY, product::cases),
    (choose::FAMILY, choose::cases),
    (fused::FAMILY, fused::cases),
];

/// All cases.
pub fn all() -> Vec<Case> {
    FAMILIES.iter().flat_map(|(_, cases)| cases()).collect()
}

impl Case {
    /// The values that are compared, with their names: outputs, then named values.
    pub fn compared(&self) -> Vec<(String, Value)> {
        let graph = self.graph.view();
        let rows = graph.outputs.iter().chain(graph.named);
        rows.map(|row| (graph.name(row.name).to_string(), row.value)).collect()
    }

    /// Number of outputs: the first of the compared values.
    pub fn outputs(&self) -> usize {
        self.graph.outputs.len()
    }

    /// What the evaluator gives: the compared values after each step.
    ///
    /// # Errors
    /// The case is faulty.
    pub fn evaluate(&self) -> Result<Vec<Vec<Tensor>>, Fault> {
        let graph = self.graph.view();
        let evaluator = Evaluator::new(graph, &self.weights);
        let wanted: Vec<Value> = self.compared().iter().map(|row| row.1).collect();
        let mut states = States::new(&graph);
        self.feeds.iter().map(|feed| evaluator.step(&mut states, feed.step, &feed.tokens, &wanted)).collect()
    }

    /// Its forms: for each profile one, or the unfused one.
    ///
    /// # Errors
    /// A profile is malformed.
    pub fn forms(&self) -> Result<Vec<Option<Profile>>, Diagnostic> {
        match self.profiles {
            [] => Ok(vec![None]),
            names => names.iter().map(|name| Profile::find(name).map(Some)).collect(),
        }
    }

    /// The plan of the case in one of its forms, checked.
    ///
    /// # Errors
    /// The case is faulty, or devices have no kernel for it.
    pub fn plan(&self, targets: &[Target], fusion: Option<&Profile>) -> Result<PlanTables, Diagnostic> {
        let graph = self.graph.view();
        let faulty = |fault: String| {
            Diagnostic::new(codes::PLAN_DAMAGED, "a case of the kernel suite is faulty")
                .at(Place::item(self.family, &self.name))
                .wanted("a graph that can be compiled", fault)
                .help("this is a fault of ours, please report it")
        };
        ds4_ir::verify::verify(&graph).map_err(|fault| faulty(fault.to_string()))?;
        let frame = Frame {
            identity: [0; 32],
            facts: Vec::new(),
            files: self.weights.files(),
            weights: self.weights.weights(),
            context: self.bounds.context,
            entries: &[("step", self.bounds.columns)],
            form: Form { targets, fusion },
        };
        let plan = assemble(&graph, &frame)?;
        ds4_ir::plan::check::check(&graph, &plan.view()).map_err(faulty)?;
        Ok(plan)
    }
}
