//! Where each weight of a model lies.

use ds4_ir::Format;
use ds4_ir::diagnostic::{Diagnostic, Place, codes};
use ds4_ir::entity::Entity;

use super::architecture::{Architecture, LayerKind};
use super::roles::{ROLES, Role, Scope};
use crate::read::{Checkpoint, FileId, Metadata, TensorId};

ds4_ir::entities! {
    /// A weight of a model.
    WeightId = "weight";
}

/// One stored piece of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The tensor in the checkpoint's table.
    pub tensor: TensorId,
    /// File of the data.
    pub file: FileId,
    /// First byte of the data in that file.
    pub offset: u64,
    /// Bytes of the data.
    pub bytes: u64,
    /// File and first byte of the scales of FP8 and FP4.
    pub scale: Option<(FileId, u64)>,
}

/// A weight: what is stored, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightRef {
    /// Storage format.
    pub format: Format,
    /// Row-major shape: of routed experts `[expert, out, in]`, of other matrices `[out, in]`.
    pub shape: Vec<u64>,
    /// One part with all of it, or a part for each expert.
    pub parts: Vec<Part>,
    /// Rows and columns of a part that one scale covers, for FP8 and FP4; else zeros. The scales of a
    /// part are `[ceil(out / rows), ceil(in / columns)]` bytes, row-major.
    pub scale_block: [u32; 2],
}

/// The weights of a model, a column for each fact.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Weights {
    /// What the weight is for.
    pub role: Vec<Role>,
    /// Its layer, `None` for weights of the whole model.
    pub layer: Vec<Option<u32>>,
    /// Where it lies.
    pub reference: Vec<WeightRef>,
    /// Row by `slot(role, layer)`, `u32::MAX` for none.
    slots: Vec<u32>,
}

/// Slot of a role: a block for the model, then a block for each layer.
fn slot(role: Role, layer: Option<u32>) -> usize {
    layer.map_or(0, |layer| layer as usize + 1) * ROLES.len() + role as usize
}

impl Weights {
    /// Number of weights.
    pub fn len(&self) -> usize {
        self.role.len()
    }

    /// Whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.role.is_empty()
    }

    /// All weights: those of the model, then layer by layer in the order of [`ROLES`].
    pub fn ids(&self) -> impl Iterator<Item = WeightId> + use<> {
        (0..self.len() as u32).map(WeightId)
    }

    /// The row of a role.
    pub fn find(&self, role: Role, layer: Option<u32>) -> Option<WeightId> {
        let row = *self.slots.get(slot(role, layer))?;
        (row != u32::MAX).then_some(WeightId(row))
    }

    /// The weight of a role.
    pub fn get(&self, role: Role, layer: Option<u32>) -> Option<&WeightRef> {
        self.find(role, layer).map(|id| &self.reference[id.index()])
    }

    fn push(&mut self, role: Role, layer: Option<u32>, reference: WeightRef) {
        self.slots[slot(role, layer)] = self.len() as u32;
        self.role.push(role);
        self.layer.push(layer);
        self.reference.push(reference);
    }
}

/// Finds the tensors of all roles and checks their shapes and formats.
///
/// Also gives the tensors that no role asks for, sorted by name, without those of drafting blocks.
pub(super) fn bind(
    checkpoint: &Checkpoint,
    architecture: &Architecture,
) -> Result<(Weights, Vec<TensorId>), Diagnostic> {
    let layers = architecture.layers.len();
    let mut weights = Weights { slots: vec![u32::MAX; (layers + 1) * ROLES.len()], ..Weights::default() };
    let mut binder = Binder { checkpoint, used: vec![false; checkpoint.tensors.len()] };
    for layer in std::iter::once(None).chain((0..layers as u32).map(Some)) {
        // The kind means nothing to weights of the whole model.
        let kind = architecture.layers.kind[layer.unwrap_or(0) as usize];
        for row in ROLES {
            if (row.scope == Scope::Top) != layer.is_none() {
                continue;
            }
            if row.role.is_needed(architecture, layer) {
                let shape = row.role.shape(architecture, kind);
                weights.push(row.role, layer, binder.bind(row.role, layer, shape)?);
            } else if row.role.tells_kind() {
                binder.refuse(row.role, layer, kind)?;
            }
        }
    }
    let unknown = binder.unknown(layers as u64);
    Ok((weights, unknown))
}

struct Binder<'a> {
    checkpoint: &'a Checkpoint,
    used: Vec<bool>,
}

impl Binder<'_> {
    /// The name of a role's tensor, or of the tensor of one expert where experts lie apart.
    fn name(&self, role: Role, layer: Option<u32>, expert: u32) -> String {
        match self.checkpoint.metadata {
            Metadata::Gguf(_) => role.gguf_name(layer),
            Metadata::Config(_) => role.released_name(layer, expert),
        }
    }

    fn lie_apart(&self, role: Role) -> bool {
        role.is_stacked() && matches!(self.checkpoint.metadata, Metadata::Config(_))
    }

    fn bind(&mut self, role: Role, layer: Option<u32>, shape: Vec<u64>) -> Result<WeightRef, Diagnostic> {
        let (count, part_shape) = if self.lie_apart(role) { (shape[0] as u32, &shape[1..]) } else { (1, &shape[..]) };
        let mut parts = Vec::new();
        let mut format = None;
        for expert in 0..count {
            let id = self.take(&self.name(role, layer, expert))?;
            self.check_shape(id, part_shape)?;
            self.check_format(id, role, *format.get_or_insert(self.format(id)))?;
            parts.push(self.part(id));
        }
        let first = parts[0].tensor;
        let scale = self.checkpoint.tensors.scale[first.index()];
        Ok(WeightRef {
            format: self.format(first),
            shape,
            parts,
            scale_block: scale.map_or([0, 0], |scale| scale.block),
        })
    }

    fn format(&self, id: TensorId) -> Format {
        self.checkpoint.tensors.format[id.index()]
    }

    fn part(&self, id: TensorId) -> Part {
        let tensors = &self.checkpoint.tensors;
        let row = id.index();
        Part {
            tensor: id,
            file: tensors.file[row],
            offset: tensors.offset[row],
            bytes: tensors.bytes[row],
            scale: tensors.scale[row].map(|scale| (scale.file, scale.offset)),
        }
    }

    fn take(&mut self, name: &str) -> Result<TensorId, Diagnostic> {
        match self.checkpoint.tensors.find(name) {
            Some(id) => {
                self.used[id.index()] = true;
                Ok(id)
            }
            None => {
                let place = Place::item(self.checkpoint.name(), format!("tensor {name}"));
                let message = format!("the weight {name} is missing");
                Err(Diagnostic::new(codes::WEIGHT_MISSING, message)
                    .at(place)
                    .wanted(format!("a tensor {name}"), "no tensor of that name"))
            }
        }
    }

    fn error(&self, id: TensorId, code: ds4_ir::Code, message: &str) -> Diagnostic {
        let tensors = &self.checkpoint.tensors;
        let path = &self.checkpoint.files.path[tensors.file[id.index()].index()];
        let item = format!("tensor {}", tensors.name[id.index()]);
        Diagnostic::new(code, message).at(Place::item(path.display().to_string(), item))
    }

    fn check_shape(&self, id: TensorId, wanted: &[u64]) -> Result<(), Diagnostic> {
        let found = self.checkpoint.tensors.shape_of(id);
        if found == wanted {
            return Ok(());
        }
        let message = "the weight has the wrong shape";
        let error = self.error(id, codes::WEIGHT_SHAPE, message);
        Err(error.wanted(format!("{wanted:?}"), format!("{found:?}")))
    }

    /// The format must suit the role; experts that lie apart must have that of the first.
    fn check_format(&self, id: TensorId, role: Role, first: Format) -> Result<(), Diagnostic> {
        let found = self.format(id);
        let family = role.row().family;
        let wanted = if !family.allows(found) {
            family.describe().to_owned()
        } else if found != first {
            format!("{}, as the first expert", first.name())
        } else {
            return Ok(());
        };
        let message = "the weight has the wrong kind of format";
        let error = self.error(id, codes::WEIGHT_FORMAT, message);
        Err(error.wanted(wanted, found.name()))
    }

    /// Refuses tensors of pooling or indexer in a layer whose ratio has no use for them.
    fn refuse(&self, role: Role, layer: Option<u32>, kind: LayerKind) -> Result<(), Diagnostic> {
        let name = self.name(role, layer, 0);
        let Some(id) = self.checkpoint.tensors.find(&name) else {
            return Ok(());
        };
        let message = "the layer's ratio and its tensors disagree";
        let error = self.error(id, codes::INDEXER_MISMATCH, message);
        Err(error.wanted(format!("no such tensor in a layer of ratio {}", kind.ratio), "the tensor"))
    }

    fn unknown(&self, layers: u64) -> Vec<TensorId> {
        let tensors = &self.checkpoint.tensors;
        let unused = tensors.sorted().filter(|id| !self.used[id.index()]);
        unused.filter(|id| !is_drafting(&tensors.name[id.index()], layers)).collect()
    }
}

/// Whether a tensor belongs to a block that drafts tokens: these are left alone.
fn is_drafting(name: &str, layers: u64) -> bool {
    let behind = |prefix| {
        let number = name.strip_prefix(prefix).and_then(|rest: &str| rest.split('.').next());
        let number = number.and_then(|digits| digits.parse::<u64>().ok());
        number.is_some_and(|number| number >= layers)
    };
    name.starts_with("mtp.") || name.contains("nextn") || behind("blk.") || behind("layers.")
}
