//! Values that lanes of a workgroup hand each other through a buffer: behind a barrier that orders buffers they see them, and
//! nothing else orders them.

use crate::emit::StepBlock;
use crate::kernel::{Access, Builder, ExtentRow, Kernel, Source, Type, Word};
use crate::machine::{Cells, Check, LaneOrder, Machine};
use crate::read::Reading;

use super::bench::{D, LANGUAGES};

const LANES: u32 = 64;
const GROUPS: u32 = 3;

/// How lanes meet, and whose cells they read.
#[derive(Clone, Copy)]
struct Exchange {
    buffers: bool,
    /// Distance to the workgroup whose cells a workgroup reads.
    from: u32,
}

const RIGHT: Exchange = Exchange { buffers: true, from: 0 };

/// Each lane writes thrice its number to a buffer, and reads what another lane wrote, twice.
fn kernel(Exchange { buffers, from }: Exchange) -> Kernel {
    let b = Builder::new("handed", &[], LANES);
    let group = b.group(ExtentRow::constant(GROUPS));
    let between = b.argument(Source::Slot(ds4_ir::Value(0)), Type::Word, Access::Write, "between");
    let out = b.argument(Source::Slot(ds4_ir::Value(1)), Type::Word, Access::Write, "out");
    assert_eq!(b.argument(Source::Slot(ds4_ir::Value(0)), Type::Word, Access::Read, "again"), between);
    let meet = || if buffers { b.barrier_with_buffers() } else { b.barrier() };
    let cell = |group: Word, lane: Word| b.add_int(b.mul_int(group, b.word(LANES)), lane);
    use ds4_ir::numerics::Arith;
    let mine = b.name("mine", cell(group, b.lane()));
    let other = b.rem_int(b.add_int(group, b.word(from)), GROUPS);
    let theirs = b.name("theirs", cell(other, b.xor(b.lane(), b.word(37))));
    b.store(between, mine, b.mul_int(mine, b.word(3)));
    meet();
    let first: Word = b.load("first", between, theirs);
    meet();
    b.store(between, mine, b.add_int(first, b.word(1)));
    meet();
    let second: Word = b.load("second", between, theirs);
    b.store(out, mine, second);
    b.finish()
}

/// What a kernel leaves in both buffers, or the check that refused.
fn left(kernel: &Kernel, order: LaneOrder) -> Result<[Vec<u32>; 2], Check> {
    let count = (GROUPS * LANES) as usize;
    let mut cells = [Cells::of_words(&D, &vec![7; count]), Cells::unwritten(count)];
    Machine::new(kernel, &D, order).unwrap().run(&|_| 0, &mut cells).map_err(|trap| trap.check)?;
    Ok(cells.map(|cells| (0..count).map(|at| cells.word(&D, at).unwrap()).collect()))
}

/// The kernel and what is read from each of its texts.
fn all(kernel: &Kernel) -> Vec<(&'static str, Kernel)> {
    let mut all = vec![("kernel", kernel.clone())];
    for language in &LANGUAGES {
        let Reading { kernel, .. } = language.texts(std::slice::from_ref(kernel)).swap_remove(0).unwrap();
        all.push((language.target.name(), kernel));
    }
    all
}

/// The same in both orders, from the kernel and from all texts.
fn refused(exchange: Exchange) -> Check {
    let mut found = Vec::new();
    for (name, kernel) in all(&kernel(exchange)) {
        found.extend(LaneOrder::ALL.map(|order| left(&kernel, order).expect_err(name)));
    }
    assert!(found.iter().all(|check| *check == found[0]), "{found:?}");
    found[0]
}

#[test]
fn lanes_see_what_was_written_before_a_barrier_that_orders_buffers() {
    for (name, kernel) in all(&kernel(RIGHT)) {
        let [between, out] = LaneOrder::ALL.map(|order| left(&kernel, order).unwrap()).map(|[between, out]| {
            assert!((0..).zip(&between).all(|(i, &word)| word == 3 * (i ^ 37) + 1), "{name}");
            out
        });
        assert_eq!(between, out, "{name}");
        assert!((0..).zip(&out).all(|(i, &word)| word == 3 * i + 1), "{name}");
    }
}

#[test]
fn a_barrier_of_arrays_alone_leaves_a_race() {
    assert_eq!(refused(Exchange { buffers: false, ..RIGHT }), Check::Race);
}

#[test]
fn nothing_orders_workgroups() {
    assert_eq!(refused(Exchange { from: 1, ..RIGHT }), Check::Race);
}

/// The fences of a text say which barrier it is; one without a barrier behind it is no statement.
#[test]
fn a_text_says_what_a_barrier_orders() {
    let kernel = kernel(RIGHT);
    for (language, fence) in LANGUAGES.iter().zip(["storageBarrier();", "fence.acq_rel.cta;", "__threadfence_block();"])
    {
        let text = (language.emit)(&kernel, &StepBlock::of([&kernel])).unwrap();
        assert_eq!(text.matches(fence).count(), 3);
        let without = (language.read)(&text.replacen(fence, "", 1)).unwrap();
        let found = LaneOrder::ALL.map(|order| left(&without.kernel, order));
        assert!(found.iter().all(|found| *found == Err(Check::Race)), "{}", language.target.name());
        let barrier = ["workgroupBarrier();", "bar.sync 0;", "__syncthreads();"]
            .into_iter()
            .find(|barrier| text.contains(barrier))
            .unwrap();
        for changed in [text.replacen(barrier, "", 1), text.replacen(fence, &fence.repeat(2), 1)] {
            assert!((language.read)(&changed).is_err(), "{}", language.target.name());
        }
    }
}
