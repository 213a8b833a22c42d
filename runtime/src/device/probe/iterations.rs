//! How long a lane may be in loops.
//!
//! Mesa's llvmpipe counts the iterations of all loops of a lane together and ends every loop behind 65,535 of them. No limit of
//! Vulkan says so, and what a longer kernel stores is wrong. So a long loop is run, and its result tells how far it came.

use ds4_ir::Value;
use ds4_ir::graph::Constant;
use ds4_ir::numerics::Arith;
use ds4_kernels::kernel::{Access, Builder, ExtentRow, Kernel, Source, Type};

use super::inputs::COUNT;
use super::kernel::{LANES, text};

/// Iterations of the loop.
const MOST: u32 = 1 << 20;
/// A generator of full period, so that each state tells its number (constants of Numerical Recipes, 2nd edition, 7.1).
const FACTOR: u32 = 1_664_525;
const ADDEND: u32 = 1_013_904_223;

/// The kernel: the first lanes step the generator so often, with the bindings of an item's kernel.
fn kernel(most: u32) -> Kernel {
    let b = Builder::new("probe", &[], LANES as u32);
    b.about("how many iterations a loop has");
    for (name, column) in [("column_a", 0), ("column_b", 1), ("column_c", 2)] {
        b.argument(Source::Constant(Constant(column)), Type::Word, Access::Read, name);
    }
    let results = b.argument(Source::Slot(Value(0)), Type::Word, Access::Write, "results");
    let group = b.group(ExtentRow::constant((COUNT / LANES) as u32));
    let i = b.name("i", b.add_int(b.mul_int(group, b.word(LANES as u32)), b.lane()));
    b.when(b.below(i, b.word(LANES as u32)), || {
        let state = b.var("state", b.word(0));
        b.repeat("turn", b.word(0), ExtentRow::constant(most), 1, |_| {
            b.update(state, |now| b.add_int(b.mul_int(now, b.word(FACTOR)), b.word(ADDEND)));
        });
        b.store(results, i, b.value("state", state));
    });
    b.finish()
}

/// The text of the kernel.
pub(super) fn wgsl() -> String {
    text(&kernel(MOST))
}

/// States of the generator, the one before any step first.
fn states() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(0u32), |state| Some(state.wrapping_mul(FACTOR).wrapping_add(ADDEND)))
}

/// How many iterations a device does that gave these results: the fewest of its lanes, `u32::MAX` where all came to the end.
pub(super) fn found(results: &[u32]) -> u32 {
    let number = |&got: &u32| states().take(MOST as usize + 1).position(|state| state == got).unwrap_or(0) as u32;
    match results.iter().take(LANES).map(number).min() {
        Some(MOST) => u32::MAX,
        least => least.unwrap_or(0),
    }
}

/// What a device gives that ends a lane's loops behind so many iterations.
#[cfg(test)]
pub(super) fn results(most: u32) -> Vec<u32> {
    let state = states().nth(most.min(MOST) as usize);
    vec![state.unwrap_or_default(); COUNT]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ds4_ir::numerics::Concrete;
    use ds4_kernels::machine::{Cells, LaneOrder, Machine};

    #[test]
    fn the_results_tell_how_far_a_loop_came() {
        for turns in [0, 1, 77, 1000] {
            let kernel = kernel(turns);
            let mut cells: Vec<Cells<Concrete>> = (0..4).map(|_| Cells::of_words(&Concrete, &vec![5; COUNT])).collect();
            let machine = Machine::new(&kernel, &Concrete, LaneOrder::Descending).unwrap();
            machine.run(&|_| 0, &mut cells).unwrap();
            let results: Vec<u32> = (0..COUNT).map(|i| cells[3].word(&Concrete, i).unwrap()).collect();
            assert_eq!(found(&results), turns);
        }
        assert_eq!([65_535, MOST - 1, MOST].map(|most| found(&results(most))), [65_535, MOST - 1, u32::MAX]);
        let mut one = results(MOST);
        one[LANES - 1] = results(9)[0];
        assert_eq!(found(&one), 9);
    }
}
