//! The conformance probe: whether a device keeps the numeric contract, asked before strict use.
//!
//! Small kernels run on inputs that random data would not hit, and every result is compared with the contract's bits.
//!
//! ```text
//! items      what is computed, and what it must give
//! inputs     cancellation, subnormals, edges, special values
//! kernel     an item's kernel, printed by the emitter of plans
//! iterations how long a lane may be in loops
//! verdict    what was found; kept between runs; the refusal
//! ```

mod inputs;
mod items;
mod iterations;
mod kernel;
mod verdict;

use ds4_ir::Diagnostic;

pub use inputs::{COUNT, Inputs, Set};
pub use items::{ITEMS, Item};
pub use verdict::{Failure, Outcome, Verdict};

use super::cache::Cache;
use super::shader;
use super::wgpu::{Arena, Device, Launch};

/// What the probe needs of a device.
pub trait Target {
    /// The results of an item's kernel on inputs, one word for each.
    fn results(&mut self, item: &Item, inputs: &Inputs) -> Result<Vec<u32>, Diagnostic>;

    /// The results of the kernel that counts iterations.
    fn counted(&mut self) -> Result<Vec<u32>, Diagnostic>;
}

/// Runs all items.
///
/// # Errors
/// The device refuses a kernel or was lost. A wrong result is no error: it is in the verdict.
pub fn probe(target: &mut dyn Target) -> Result<Verdict, Diagnostic> {
    let mut sets: Vec<Inputs> = Vec::new();
    let mut outcomes = Vec::new();
    for item in ITEMS {
        if sets.iter().all(|inputs| inputs.set != item.set) {
            sets.push(Inputs::of(item.set));
        }
        for inputs in sets.iter().filter(|inputs| inputs.set == item.set) {
            let failure = compare(item, inputs, &target.results(item, inputs)?);
            outcomes.push(Outcome { item: item.name.into(), failure });
        }
    }
    Ok(Verdict { outcomes, iterations: iterations::found(&target.counted()?) })
}

fn compare(item: &Item, inputs: &Inputs, results: &[u32]) -> Option<Failure> {
    let rows = results.iter().enumerate().map(|(index, &got)| (index, item.wanted(inputs, index), got));
    let mut wrong = rows.filter(|&(_, wanted, got)| !item.accepts(wanted, got));
    let (index, wanted, got) = wrong.next()?;
    Some(Failure { inputs: inputs.words(index), wanted, got, wrong: 1 + wrong.count(), of: results.len() })
}

/// The verdict on an opened device: the one that an earlier run kept, or a new one.
///
/// # Errors
/// The device refuses a kernel or was lost.
pub fn verdict(device: &Device, cache: &Cache) -> Result<Verdict, Diagnostic> {
    let identity = device.about().identity();
    if let Some(kept) = Verdict::kept(cache, &identity) {
        return Ok(kept);
    }
    let verdict = probe(&mut OnDevice::new(device)?)?;
    verdict.keep(cache, &identity);
    Ok(verdict)
}

/// A device of wgpu as a target.
pub(super) struct OnDevice<'a> {
    device: &'a Device,
    columns: [Arena; 3],
    results: Arena,
    step: Arena,
    /// The inputs that lie in the columns.
    set: Option<Set>,
}

impl<'a> OnDevice<'a> {
    /// A target with memory for inputs and results.
    pub(super) fn new(device: &'a Device) -> Result<Self, Diagnostic> {
        let arena = |name| device.arena(name, 4 * COUNT as u64);
        let words = kernel::step();
        let step = device.arena("step", 4 * words.len() as u64)?;
        device.upload(&step, 0, bytemuck::cast_slice(&words))?;
        let columns = [arena("column a")?, arena("column b")?, arena("column c")?];
        Ok(OnDevice { device, columns, results: arena("results")?, step, set: None })
    }

    fn load(&mut self, inputs: &Inputs) -> Result<(), Diagnostic> {
        if self.set == Some(inputs.set) {
            return Ok(());
        }
        self.set = None;
        for (arena, column) in self.columns.iter().zip(&inputs.columns) {
            self.device.upload(arena, 0, bytemuck::cast_slice(column))?;
        }
        self.set = Some(inputs.set);
        Ok(())
    }

    /// The results of a kernel that was lowered already.
    pub(super) fn run(&mut self, shader: &shader::Shader, inputs: &Inputs) -> Result<Vec<u32>, Diagnostic> {
        self.load(inputs)?;
        let pipeline = self.device.pipeline(shader)?;
        let [a, b, c] = &self.columns;
        let bound = self.device.bind(&pipeline, &[&self.step, a, b, c, &self.results].map(Arena::whole))?;
        let groups = [COUNT as u32 / shader.workgroup[0], 1, 1];
        self.device.submit(&[Launch { pipeline: &pipeline, bound: &bound, groups }])?;
        let bytes = self.device.read(self.results.whole())?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}

impl Target for OnDevice<'_> {
    fn results(&mut self, item: &Item, inputs: &Inputs) -> Result<Vec<u32>, Diagnostic> {
        let shader = shader::lower(&format!("probe of {}", item.name), &item.wgsl())?;
        self.run(&shader, inputs)
    }

    fn counted(&mut self) -> Result<Vec<u32>, Diagnostic> {
        let shader = shader::lower("probe of iterations", &iterations::wgsl())?;
        self.run(&shader, &Inputs::of(Set::Words))
    }
}

#[cfg(test)]
mod tests;
