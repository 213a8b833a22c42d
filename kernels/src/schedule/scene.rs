//! What a schedule knows of the plan around its launch.

use std::fmt;

use ds4_ir::dim::dim_max;
use ds4_ir::graph::Graph;
use ds4_ir::plan::{Layout, SlotRow};
use ds4_ir::text::shape_text;
use ds4_ir::{Bounds, Dim, DimOp, Op, Tree, Value};

use crate::kernel::{Builder, ExtentRow};

/// Why there is no kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The value has to be stored first.
    Store(Value),
    /// No schedule does this.
    Unsupported(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Store(v) => write!(f, "{v} has to be stored"),
            Refusal::Unsupported(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Refusal {}

/// Rows and columns that share a scale, for formats whose scales are a tensor of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScaleBlocks {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
}

/// The plan around a launch.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The value graph.
    pub graph: Graph<'a>,
    /// Bounds of the entry point.
    pub bounds: Bounds,
    /// The stored values of the entry point, ascending.
    pub slots: &'a [SlotRow],
    /// Where each value lies, of [`ds4_ir::plan::layout::layouts`].
    pub layouts: &'a [Option<Layout>],
    /// Of each weight; zeros where the format has its scales itself.
    pub scales: &'a [ScaleBlocks],
}

impl Scene<'_> {
    /// The layout of a value.
    pub(crate) fn layout(&self, v: Value) -> Result<&Layout, Refusal> {
        self.layouts[v.0 as usize].as_ref().ok_or(Refusal::Store(v))
    }

    /// Whether a value has memory: its own, or a place inside a concat's.
    pub(crate) fn is_stored(&self, v: Value) -> bool {
        self.slots.binary_search_by_key(&v, |slot| slot.value).is_ok()
    }

    /// A constant dimension.
    pub(crate) fn constant(&self, dim: Dim) -> Option<u32> {
        match DimOp::of(self.graph.dims[dim.0 as usize]) {
            Some(DimOp::Const(n)) => Some(n),
            _ => None,
        }
    }

    /// A dimension times a number.
    pub(crate) fn extent(&self, dim: Dim, times: u32) -> ExtentRow {
        match self.constant(dim) {
            Some(n) => ExtentRow { scalar: None, most: n, times, per: 1 },
            None => ExtentRow { scalar: Some(dim), most: dim_max(self.graph.dims, dim, self.bounds), times, per: 1 },
        }
    }

    /// The extents of a value's axes.
    pub(crate) fn extents(&self, v: Value) -> Vec<ExtentRow> {
        self.graph.dims_of(v).iter().map(|&d| self.extent(d, 1)).collect()
    }

    /// A builder for the kernel of a value, called after its span and operation.
    pub(crate) fn builder(&self, v: Value, lanes: u32) -> Builder {
        let path = self.graph.span_path(self.graph.value_span[v.0 as usize]);
        let op = self.graph.op(v).name();
        let name = if path.is_empty() { format!("{op}.{v}") } else { format!("{path}.{op}.{v}") };
        let b = Builder::new(&name, &[v], lanes);
        b.about(&self.about(v));
        b
    }

    /// `v4 f32[columns, 5] = product(v3 q8[columns, 96], v0 w.q8_0[5, 96]), lanes(32)`
    fn about(&self, v: Value) -> String {
        let graph = self.graph;
        let typed = |v: Value| format!("{v} {}{}", graph.ty(v).name(), shape_text(graph.dims, graph.dims_of(v)));
        let operands: Vec<String> = graph.args(v).iter().map(|&a| typed(a)).collect();
        let attrs = graph.attrs(v);
        let tree = match graph.op(v) {
            Op::Reduce => Tree::from_number(attrs[1]),
            Op::Product => Tree::from_number(attrs[0]),
            _ => None,
        };
        let order = match tree {
            Some(Tree::Seq) => ", ascending".into(),
            Some(Tree::Lanes(n)) => format!(", lanes({n})"),
            _ => String::new(),
        };
        format!("{} = {}({}){order}", typed(v), graph.op(v).name(), operands.join(", "))
    }
}
