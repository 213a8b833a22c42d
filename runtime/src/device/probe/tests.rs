//! The probe on the reference itself, on a device that a test perturbs, and on a real one.

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;
use ds4_ir::numerics::Concrete;
use ds4_kernels::machine::{Cells, LaneOrder, Machine};

use super::*;
use crate::device::wgpu::tests::device;

/// A device that gives the contract's bits, but for one item.
struct Fake {
    spoiled: &'static str,
    /// Where its loops end.
    iterations: u32,
}

impl Target for Fake {
    fn results(&mut self, item: &Item, inputs: &Inputs) -> Result<Vec<u32>, Diagnostic> {
        let spoil = |index: usize| u32::from(item.name == self.spoiled && index % 1000 == 77);
        Ok((0..COUNT).map(|index| item.wanted(inputs, index) ^ spoil(index)).collect())
    }

    fn counted(&mut self) -> Result<Vec<u32>, Diagnostic> {
        Ok(iterations::results(self.iterations))
    }
}

fn fake(spoiled: &'static str) -> Verdict {
    probe(&mut Fake { spoiled, iterations: u32::MAX }).unwrap()
}

#[test]
fn names_are_unique() {
    let names: std::collections::BTreeSet<_> = ITEMS.iter().map(|item| item.name).collect();
    assert_eq!(names.len(), ITEMS.len());
}

#[test]
fn a_device_that_keeps_the_contract_passes() {
    let verdict = fake("");
    assert_eq!(verdict.failures().count(), 0);
    verdict.check("toy").unwrap();
}

#[test]
fn the_end_of_loops_is_found() {
    let found = |iterations| probe(&mut Fake { spoiled: "", iterations }).unwrap().iterations;
    assert_eq!([100, 65_535, u32::MAX].map(found), [100, 65_535, u32::MAX]);
}

#[test]
fn each_item_can_fail() {
    for item in ITEMS {
        let verdict = fake(item.name);
        let failed: Vec<_> = verdict.failures().map(|(name, failure)| (name, failure.wrong)).collect();
        // A NaN with another payload is no failure: square roots and logarithms of negative numbers.
        assert!(matches!(failed[..], [(name, 25..=66)] if name == item.name), "{}: {failed:?}", item.name);
        assert_eq!(verdict.check("toy").unwrap_err().code, codes::DEVICE_INEXACT);
    }
    insta::assert_snapshot!(fake("mac").check("Toy Graphics 3000").unwrap_err());
}

#[test]
fn verdicts_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    assert_eq!(Verdict::kept(&cache, "toy"), None);
    let verdict = fake("loop");
    verdict.keep(&cache, "toy");
    assert_eq!(Verdict::kept(&cache, "toy"), Some(verdict.clone()));
    assert_eq!(Verdict::kept(&cache, "toy, new driver"), None);
    // A verdict over other items is none.
    Verdict { outcomes: verdict.outcomes[1..].to_vec(), ..verdict }.keep(&cache, "toy");
    assert_eq!(Verdict::kept(&cache, "toy"), None);
}

#[test]
fn a_function_of_the_contract_is_printed() {
    let exp = ITEMS.iter().find(|item| item.name == "exp").unwrap().wgsl();
    let body = exp.split_once("fn probe").unwrap().1;
    insta::assert_snapshot!(body);
}

/// What an item wants is what its kernel says: on the kernel machine, all bits agree.
#[test]
fn every_kernel_computes_what_is_wanted() {
    for item in ITEMS {
        let (kernel, inputs) = (item.kernel(), Inputs::of(item.set));
        let columns = inputs.columns.iter().map(|column| Cells::of_words(&Concrete, column));
        let mut cells: Vec<Cells<Concrete>> = columns.chain([Cells::unwritten(COUNT)]).collect();
        let machine = Machine::new(&kernel, &Concrete, LaneOrder::Descending).unwrap();
        machine.run(&|_| 0, &mut cells).unwrap_or_else(|trap| panic!("{}: {trap}", item.name));
        let results: Vec<u32> = (0..COUNT).map(|i| cells[3].word(&Concrete, i).unwrap()).collect();
        assert_eq!(compare(item, &inputs, &results), None, "{}", item.name);
    }
}

#[test]
fn every_kernel_is_lowered() {
    for item in ITEMS {
        let shader = shader::lower(item.name, &item.wgsl()).unwrap_or_else(|error| panic!("{}: {error}", item.name));
        assert_eq!(shader.bindings.len(), 5);
    }
}

#[test]
fn this_machines_device_keeps_the_contract() {
    let Some(device) = device("this_machines_device_keeps_the_contract") else { return };
    let start = std::time::Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let verdict = super::verdict(&device, &cache).unwrap();
    println!("{}: {} items in {:?}", device.about().identity(), ITEMS.len(), start.elapsed());
    verdict.check(&device.about().name).unwrap();
    assert_eq!(Verdict::kept(&cache, &device.about().identity()), Some(verdict));
}

/// A device that gets the words of naga as they are.
struct Loose<'a>(OnDevice<'a>);

impl Target for Loose<'_> {
    fn results(&mut self, item: &Item, inputs: &Inputs) -> Result<Vec<u32>, Diagnostic> {
        self.0.run(&shader::lower_loose(item.name, &item.wgsl())?, inputs)
    }

    fn counted(&mut self) -> Result<Vec<u32>, Diagnostic> {
        self.0.counted()
    }
}

#[test]
fn without_the_strict_pass_the_probe_finds_faults() {
    let Some(device) = device("without_the_strict_pass_the_probe_finds_faults") else { return };
    let verdict = probe(&mut Loose(OnDevice::new(&device).unwrap())).unwrap();
    let failed: Vec<_> = verdict.failures().map(|(item, _)| item).collect();
    println!("{}: {failed:?}", device.about().name);
    // Both of the drivers that were measured break these.
    for item in ["distributive", "difference", "integer", "constants"] {
        assert!(failed.contains(&item), "{item} is not among {failed:?}");
    }
}
