//! Devices of this machine. Without one, each test says that it is skipped; under `CI=true` it fails.

use ds4_ir::diagnostic::codes;

use super::*;
use crate::device::cache::Cache;
use crate::device::shader::lower;

/// A device of paper, small.
pub(in crate::device) fn toy() -> About {
    About {
        name: "Toy Graphics 3000".into(),
        kind: "discrete",
        driver: "toy".into(),
        driver_info: "1.0".into(),
        ids: [0x1234, 0x5678],
        limits: Limits {
            buffer_bytes: 1 << 32,
            binding_bytes: 1 << 30,
            storage_buffers: 8,
            binding_alignment: 64,
            workgroup_bytes: 1024,
            workgroup_threads: 32,
            workgroup_size: [32, 32, 4],
            workgroups: 65535,
            subgroup: [8, 8],
        },
        features: vec!["subgroups"],
        missing: Vec::new(),
    }
}

/// The first device of this machine; `None` where there is none, said in the test's output.
pub(in crate::device) fn device(test: &str) -> Option<Device> {
    let adapters = Adapters::find();
    if adapters.about().next().is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{test} needs a Vulkan device: run scripts/tools");
        println!("skipped: {test}: no Vulkan device; scripts/tools installs one that runs on the CPU");
        return None;
    }
    Some(Device::open(&adapters, 0, &Cache::none()).unwrap())
}

const STEP: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn step(@builtin(global_invocation_id) id: vec3<u32>) {
    x[id.x] = x[id.x] * 3u + id.x;
}
";

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn launches_of_one_submission_see_each_other() {
    let Some(device) = device("launches_of_one_submission_see_each_other") else { return };
    let pipeline = device.pipeline(&lower("step", STEP).unwrap()).unwrap();
    let arena = device.arena("x", 4 * 1024).unwrap();
    device.upload(&arena, 0, bytemuck::cast_slice(&[7u32; 1024])).unwrap();
    let bound = device.bind(&pipeline, &[arena.whole()]).unwrap();
    let launch = Launch { pipeline: &pipeline, bound: &bound, groups: [16, 1, 1] };
    device.submit(&[launch; 100]).unwrap();
    device.wait().unwrap();
    let found = words(&device.read(arena.whole()).unwrap());
    let wanted = (0..1024u32).map(|i| (0..100).fold(7u32, |x, _| x.wrapping_mul(3).wrapping_add(i)));
    assert!(found.into_iter().eq(wanted));
}

/// One buffer is written and read in one launch; lanes see each other's words behind a barrier that orders buffers.
#[test]
fn lanes_of_a_workgroup_see_each_other_through_a_buffer() {
    use ds4_ir::numerics::Arith;
    use ds4_kernels::emit::{StepBlock, wgsl};
    use ds4_kernels::kernel::{Access, Builder, ExtentRow, Source, Type, Word};
    let Some(device) = device("lanes_of_a_workgroup_see_each_other_through_a_buffer") else { return };
    let b = Builder::new("handed", &[], 256);
    let first = b.mul_int(b.group(ExtentRow::constant(50)), b.word(256));
    let cells = b.argument(Source::Slot(ds4_ir::Value(0)), Type::Word, Access::ReadWrite, "cells");
    let mine = b.name("mine", b.add_int(first, b.lane()));
    b.repeat("k", b.word(0), ExtentRow::constant(100), 1, |k| {
        let other = b.xor(b.lane(), b.and(b.mul_int(k, b.word(37)), b.word(255)));
        let read: Word = b.load("read", cells, b.add_int(first, other));
        b.barrier_with_buffers();
        b.store(cells, mine, b.add_int(b.mul_int(read, b.word(3)), b.lane()));
        b.barrier_with_buffers();
    });
    let kernel = b.finish();
    let text = wgsl::emit(&kernel, &StepBlock::of([&kernel])).unwrap();
    assert_eq!(text.matches("storageBarrier();").count(), 2);
    let pipeline = device.pipeline(&lower("handed", &text).unwrap()).unwrap();
    let (step, arena) = (device.arena("step", 8).unwrap(), device.arena("cells", 4 * 50 * 256).unwrap());
    let bound = device.bind(&pipeline, &[step.whole(), arena.whole()]).unwrap();
    device.submit(&[Launch { pipeline: &pipeline, bound: &bound, groups: [50, 1, 1] }]).unwrap();
    let mut wanted = [0u32; 256];
    for k in 0..100 {
        let before = wanted;
        (0..256).for_each(|i| wanted[i] = before[i ^ ((k * 37) & 255)].wrapping_mul(3).wrapping_add(i as u32));
    }
    let found = words(&device.read(arena.whole()).unwrap());
    assert!(found.chunks(256).all(|group| group == wanted));
}

#[test]
fn an_index_out_of_bounds_stays_inside() {
    let Some(device) = device("an_index_out_of_bounds_stays_inside") else { return };
    let pipeline = device.pipeline(&lower("step", STEP).unwrap()).unwrap();
    let arena = device.arena("x", 1024).unwrap();
    let bound = device.bind(&pipeline, &[arena.piece(256, 256)]).unwrap();
    // 64 cells are bound, 256 threads run.
    device.submit(&[Launch { pipeline: &pipeline, bound: &bound, groups: [4, 1, 1] }]).unwrap();
    let found = words(&device.read(arena.whole()).unwrap());
    assert!(found[..64].iter().chain(&found[128..]).all(|&word| word == 0));
    assert!(found[64..127].iter().copied().eq(0..63));
}

#[test]
fn large_arenas_are_filled_in_pieces() {
    let Some(device) = device("large_arenas_are_filled_in_pieces") else { return };
    let bytes = (40 << 20) + 12;
    let arena = device.arena("weights", bytes).unwrap();
    let mut pieces = Vec::new();
    let word = |at: u64| ((at / 4) as u32).wrapping_mul(0x9e37_79b9);
    device
        .fill(arena.piece(4, bytes - 8), |at, piece| {
            pieces.push(piece.len());
            let starts = (at..).step_by(4);
            piece.chunks_exact_mut(4).zip(starts).for_each(|(cell, at)| cell.copy_from_slice(&word(at).to_le_bytes()));
        })
        .unwrap();
    assert_eq!(pieces, [16 << 20, 16 << 20, (8 << 20) + 4]);
    let found = words(&device.read(arena.whole()).unwrap());
    let (first, last) = (found[0], found[found.len() - 1]);
    assert_eq!((first, last), (0, 0));
    let inner = &found[1..found.len() - 1];
    assert!(inner.iter().enumerate().all(|(i, &found)| found == word(4 * i as u64)));
}

#[test]
fn mistakes_are_diagnostics() {
    let Some(device) = device("mistakes_are_diagnostics") else { return };
    let pipeline = device.pipeline(&lower("step", STEP).unwrap()).unwrap();
    let arena = device.arena("x", 1024).unwrap();
    let code = |result: Result<(), ds4_ir::Diagnostic>| result.unwrap_err().code;
    let bind = |pieces: &[Piece<'_>]| device.bind(&pipeline, pieces).map(drop);
    assert_eq!(code(bind(&[])), codes::DEVICE_REFUSES);
    assert_eq!(code(bind(&[arena.piece(0, 1028)])), codes::DEVICE_REFUSES);
    assert_eq!(code(bind(&[arena.piece(0, 0)])), codes::DEVICE_REFUSES);
    assert_eq!(code(bind(&[arena.piece(2, 8)])), codes::DEVICE_REFUSES);
    assert_eq!(code(device.upload(&arena, 1022, &[0; 4])), codes::DEVICE_REFUSES);
    assert_eq!(code(device.read(arena.piece(1000, 100)).map(drop)), codes::DEVICE_REFUSES);
    assert_eq!(code(device.arena("x", u64::MAX).map(drop)), codes::DEVICE_SMALL);
    let bound = device.bind(&pipeline, &[arena.whole()]).unwrap();
    let launch = Launch { pipeline: &pipeline, bound: &bound, groups: [1, 1, u32::MAX] };
    assert_eq!(code(device.submit(&[launch])), codes::DEVICE_SMALL);
    // Bindings of another kernel are found by wgpu itself.
    let other = STEP.replace("read_write", "read").replace("x[id.x] = x[id.x] * 3u + id.x;", "_ = x[id.x];");
    let other = device.pipeline(&lower("other", &other).unwrap()).unwrap();
    let launch = Launch { pipeline: &other, bound: &bound, groups: [1, 1, 1] };
    let error = device.submit(&[launch]).unwrap_err();
    assert_eq!(error.code, codes::DEVICE_REFUSES);
    // The device works on.
    device.submit(&[Launch { pipeline: &pipeline, ..launch }]).unwrap();
    device.wait().unwrap();
    let absent = Device::open(&Adapters::find(), 99, &Cache::none()).err().unwrap();
    assert_eq!(absent.code, codes::DEVICE_ABSENT);
}

#[test]
fn compiled_pipelines_are_kept() {
    let Some(first) = device("compiled_pipelines_are_kept") else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    for _ in 0..2 {
        let device = Device::open(&Adapters::find(), 0, &cache).unwrap();
        device.pipeline(&lower("step", STEP).unwrap()).unwrap();
        device.keep_pipelines();
    }
    let kept = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(kept, usize::from(first.cache.is_some()));
}
