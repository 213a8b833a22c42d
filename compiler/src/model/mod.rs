//! The model that a checkpoint holds: its architecture, and where each weight lies.
//!
//! GGUF files and released directories give the same [`Model`]. No dimension is built in.

mod architecture;
mod checks;
mod keys;
mod read_keys;
mod roles;
mod weights;

use ds4_ir::diagnostic::Diagnostic;

use crate::read::{Checkpoint, TensorId};

pub use architecture::{Architecture, Experts, Indexer, LayerKind, Layers, Rope, Special, YarnScaling};
pub use roles::{Family, ROLES, Role, RoleRow, Scope};
pub use weights::{Part, WeightId, WeightRef, Weights};

/// A model: what lowering starts from.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// Dimensions, constants and the schedule of layers.
    pub architecture: Architecture,
    /// Where each weight lies.
    pub weights: Weights,
    /// [`Checkpoint::identity`] of the source.
    pub identity: [u8; 32],
    /// Tensors that no role asks for, sorted by name, without those of drafting blocks.
    pub unknown: Vec<TensorId>,
}

impl Model {
    /// Describes the model of a checkpoint, or says what keeps it from being one.
    ///
    /// Afterwards every role that [`Role::is_needed`] asks for has a weight of the right shape and kind.
    pub fn read(checkpoint: &Checkpoint) -> Result<Model, Diagnostic> {
        let architecture = read_keys::read(checkpoint)?;
        checks::check(&architecture, &checkpoint.metadata_file())?;
        let (weights, unknown) = weights::bind(checkpoint, &architecture)?;
        Ok(Model { architecture, weights, identity: checkpoint.identity(), unknown })
    }

    /// The columns of the layers.
    pub fn layers(&self) -> &Layers {
        &self.architecture.layers
    }

    /// The weight of a role: of a layer, or of the whole model with `layer` `None`.
    pub fn weight(&self, role: Role, layer: Option<u32>) -> Option<&WeightRef> {
        self.weights.get(role, layer)
    }

    /// One line for each tensor that no role asks for.
    pub fn warnings(&self, checkpoint: &Checkpoint) -> Vec<String> {
        let name = |id: &TensorId| &checkpoint.tensors.name[id.0 as usize];
        let line = |id| format!("tensor {} is not used", name(id));
        self.unknown.iter().map(line).collect()
    }
}
