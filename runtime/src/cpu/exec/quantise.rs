//! `quantise`: f32 rows to q8.

use std::ops::Range;

use super::access::{Place, Ptr};
use super::kernel::{Kernel, Scratch, Size, StepView, grown};
use super::map::collect;
use super::nest::Nest;
use crate::cpu::products::quantise_q8;

/// A prepared `quantise`. Operands of the nest: x, output codes.
pub(crate) struct Quantise {
    pub(crate) rows: Nest,
    pub(crate) k: usize,
    pub(crate) x_k: usize,
    pub(crate) x: Place,
    /// Codes and scales of the output's slot.
    pub(crate) codes: Ptr,
    pub(crate) scales: Ptr,
}

impl Kernel for Quantise {
    fn size(&self, step: &StepView<'_>) -> Size {
        let rows = self.rows.count(step.values);
        Size { tasks: rows, nanoseconds: rows * (10 + self.k / 4) }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let k = self.k;
        let mut walk = self.rows.walk(step.values, tasks.start);
        let mut at = [0; 2];
        walk.offsets(&mut at);
        let x = self.x.at(step.values);
        let sums = grown(&mut scratch.sums, k / 16);
        for _ in tasks {
            // SAFETY: the row of x and the codes and scales of the output lie inside their slots (checked at load);
            // this task alone writes these.
            unsafe {
                let from = x.add(at[0]).cast_const();
                let x = match self.x_k {
                    1 => std::slice::from_raw_parts(from.cast::<f32>(), k),
                    _ => {
                        let row = grown(&mut scratch.floats, k);
                        collect(from, self.x_k, row.as_mut_ptr().cast(), k);
                        row
                    }
                };
                let codes = self.codes.0.cast::<i8>().add(at[1]);
                let scales = self.scales.0.cast::<f32>().add(at[1] / 32);
                quantise_q8(
                    step.isa,
                    x,
                    std::slice::from_raw_parts_mut(codes, k),
                    std::slice::from_raw_parts_mut(scales, k / 32),
                    sums,
                );
            }
            walk.advance(&mut at);
        }
    }
}
