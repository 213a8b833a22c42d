//! `reduce`: along an axis whose leaves lie together, or across rows with the inner axis in vectors.

use std::ops::Range;

use ds4_ir::{ReduceKind, Tree, Type, numerics};

use super::access::Place;
use super::extents::Ext;
use super::kernel::{Kernel, MASKED, Scratch, Size, StepView, grown};
use super::nest::Nest;
use super::sums::{self, ABSENT};
use super::width::{Permute, Task};

/// Elements that are reduced side by side.
const STRIP: usize = 64;

/// Rows whose sums wait for each other less than for themselves.
const TOGETHER: usize = 8;

/// What is done with the leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    Sum(Tree),
    Max,
    SumInt,
    MaxInt,
}

impl Rule {
    /// The rule of a verified reduction.
    pub(crate) fn of(kind: ReduceKind, tree: Tree, ty: Type) -> Rule {
        match (kind, ty == Type::F32) {
            (ReduceKind::Sum, true) => Rule::Sum(tree),
            (ReduceKind::Max, true) => Rule::Max,
            (ReduceKind::Sum, false) => Rule::SumInt,
            (ReduceKind::Max, false) => Rule::MaxInt,
        }
    }
}

/// A prepared `reduce`. Operands of the nest: x, output, mask (its strides are 0 if there is none).
pub(crate) struct Reduce {
    pub(crate) rule: Rule,
    /// Axes of the output, without the inner one if `across`.
    pub(crate) outer: Nest,
    /// The innermost axis of the output, reduced in vectors; extent 1 if not `across`.
    pub(crate) inner: Ext,
    /// Whether the inner axis is contiguous in x and output and absent from the mask.
    pub(crate) across: bool,
    /// The reduced axis and its strides in x and mask.
    pub(crate) axis: Ext,
    pub(crate) stride: usize,
    pub(crate) mask_stride: usize,
    pub(crate) x: Place,
    pub(crate) out: Place,
    pub(crate) mask: Option<Place>,
}

impl Kernel for Reduce {
    fn size(&self, step: &StepView<'_>) -> Size {
        let (rows, n) = (self.outer.count(step.values), step.get(self.inner));
        let leaves = step.get(self.axis);
        let tasks = rows * n.div_ceil(STRIP);
        let together = self.across || self.stride == 1;
        let nanoseconds = rows * (10 + n * leaves / if together { 8 } else { 1 });
        Size { tasks, nanoseconds }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let n = step.get(self.inner);
        step.width.run(Run { reduce: self, step, scratch, tasks, n, leaves: step.get(self.axis) });
    }
}

struct Run<'a> {
    reduce: &'a Reduce,
    step: &'a StepView<'a>,
    scratch: &'a mut Scratch,
    tasks: Range<usize>,
    n: usize,
    leaves: usize,
}

impl Task for Run<'_> {
    #[inline(always)]
    fn run<P: Permute>(mut self, _permute: P) {
        let r = self.reduce;
        let values = self.step.values;
        let per_row = self.n.div_ceil(STRIP);
        let mut walk = r.outer.walk(values, self.tasks.start / per_row);
        let mut offsets = [0; 3];
        walk.offsets(&mut offsets);
        let (x, out) = (r.x.at(values), r.out.at(values));
        let mask = r.mask.as_ref().map(|m| m.at(values).cast_const());
        let mut strip = self.tasks.start % per_row;
        let mut tasks = self.tasks.clone();
        while tasks.len() >= TOGETHER && self.in_sequence() {
            let (mut from, mut masks, mut to) = ([x; TOGETHER], [None; TOGETHER], [out; TOGETHER]);
            for row in 0..TOGETHER {
                from[row] = x.wrapping_add(offsets[0]);
                to[row] = out.wrapping_add(offsets[1]);
                masks[row] = mask.map(|m| m.wrapping_add(offsets[2]));
                walk.advance(&mut offsets);
            }
            // SAFETY: as below.
            unsafe { self.rows(from, masks, to) };
            tasks.start += TOGETHER;
        }
        for _ in tasks {
            let start = strip * STRIP;
            let x = x.wrapping_add(offsets[0] + start);
            let out = out.wrapping_add(offsets[1] + start);
            let mask = mask.map(|m| m.wrapping_add(offsets[2]));
            // SAFETY: the elements lie inside the operands' memory (checked at load); no other task writes these.
            unsafe {
                match r.across {
                    true => self.strip(x, out, mask, STRIP.min(self.n - start)),
                    false => *out = self.element(x, mask),
                }
            }
            strip += 1;
            if strip == per_row {
                strip = 0;
                walk.advance(&mut offsets);
            }
        }
    }
}

impl Run<'_> {
    #[inline(always)]
    unsafe fn present(&self, mask: Option<*const u32>, u: usize) -> bool {
        // SAFETY: the caller's promise for leaf `u`.
        mask.is_none_or(|m| unsafe { *m.add(u * self.reduce.mask_stride) } != MASKED)
    }

    /// Whether each element is a sum of one leaf after the other.
    fn in_sequence(&self) -> bool {
        !self.reduce.across && matches!(self.reduce.rule, Rule::Sum(Tree::Seq | Tree::Free))
    }

    /// Elements of several rows, each a sum in sequence.
    #[inline(always)]
    unsafe fn rows(&self, x: [*mut u32; TOGETHER], masks: [Option<*const u32>; TOGETHER], out: [*mut u32; TOGETHER]) {
        let stride = self.reduce.stride;
        let mut sums = [ABSENT; TOGETHER];
        for u in 0..self.leaves {
            for row in 0..TOGETHER {
                // SAFETY: the caller's promise: all leaves of all rows can be read.
                let (leaf, there) = unsafe { (f32::from_bits(*x[row].add(u * stride)), self.present(masks[row], u)) };
                sums[row] += if there { leaf } else { ABSENT };
            }
        }
        for row in 0..TOGETHER {
            // SAFETY: the caller's promise: no other task writes these.
            unsafe { *out[row] = sums[row].to_bits() };
        }
    }

    /// One element of the result.
    #[inline(always)]
    unsafe fn element(&mut self, x: *const u32, mask: Option<*const u32>) -> u32 {
        let (leaves, stride) = (self.leaves, self.reduce.stride);
        // SAFETY: the caller's promise: all leaves can be read.
        unsafe {
            match self.reduce.rule {
                Rule::Sum(Tree::Seq) if mask.is_none() => {
                    let (mut sum, mut at) = (ABSENT, x);
                    for _ in 0..leaves {
                        sum += f32::from_bits(*at);
                        at = at.wrapping_add(stride);
                    }
                    sum.to_bits()
                }
                Rule::Sum(tree) if stride == 1 && mask.is_none() => {
                    let leaves = std::slice::from_raw_parts(x.cast::<f32>(), leaves);
                    sums::sum(tree, leaves, &mut self.scratch.results).to_bits()
                }
                Rule::Sum(tree) => {
                    let list = grown(&mut self.scratch.floats, leaves).as_mut_ptr();
                    for u in 0..leaves {
                        let there = self.present(mask, u);
                        let leaf = f32::from_bits(*x.add(u * stride));
                        *list.add(u) = if there { leaf } else { ABSENT };
                    }
                    let list = std::slice::from_raw_parts(list, leaves);
                    sums::sum(tree, list, &mut self.scratch.results).to_bits()
                }
                Rule::Max if stride == 1 && mask.is_none() => {
                    largest(std::slice::from_raw_parts(x.cast::<f32>(), leaves)).to_bits()
                }
                Rule::Max if stride == 1 && self.reduce.mask_stride == 1 => {
                    let leaves_of = std::slice::from_raw_parts(x.cast::<f32>(), leaves);
                    let ids = mask.map_or(&[][..], |mask| std::slice::from_raw_parts(mask, leaves));
                    largest_present(leaves_of, ids).to_bits()
                }
                Rule::Max => (0..leaves)
                    .filter(|&u| self.present(mask, u))
                    .map(|u| f32::from_bits(*x.add(u * stride)))
                    .fold(f32::NEG_INFINITY, numerics::max)
                    .to_bits(),
                Rule::SumInt => (0..leaves)
                    .filter(|&u| self.present(mask, u))
                    .fold(0, |sum, u| (*x.add(u * stride)).wrapping_add(sum)),
                Rule::MaxInt => (0..leaves)
                    .filter(|&u| self.present(mask, u))
                    .fold(i32::MIN, |most, u| most.max(*x.add(u * stride) as i32))
                    as u32,
            }
        }
    }

    /// `len` elements side by side.
    #[inline(always)]
    unsafe fn strip(&mut self, x: *const u32, out: *mut u32, mask: Option<*const u32>, len: usize) {
        let lanes = match self.reduce.rule {
            Rule::Sum(Tree::Lanes(lanes)) => (lanes as usize).min(self.leaves),
            _ => 1,
        };
        let start = match self.reduce.rule {
            Rule::Sum(_) => ABSENT.to_bits(),
            Rule::Max => f32::NEG_INFINITY.to_bits(),
            Rule::SumInt => 0,
            Rule::MaxInt => i32::MIN as u32,
        };
        let mut single = [[start; STRIP]];
        let many;
        let acc: &mut [[u32; STRIP]] = match lanes {
            0 | 1 => &mut single,
            _ => {
                let floats = grown(&mut self.scratch.floats, lanes * STRIP);
                many = bytemuck::cast_slice_mut::<f32, u32>(floats).as_chunks_mut::<STRIP>().0;
                many.iter_mut().for_each(|lane| lane.fill(start));
                many
            }
        };
        let used = acc.len();
        let mut lane = 0;
        for u in 0..self.leaves {
            // SAFETY: the caller's promise: `len` elements of every leaf can be read.
            unsafe {
                let there = mask.is_none_or(|m| *m.add(u * self.reduce.mask_stride) != MASKED);
                if there {
                    let leaf = std::slice::from_raw_parts(x.add(u * self.reduce.stride), len);
                    join(self.reduce.rule, &mut acc[lane], leaf);
                }
            }
            lane = if lane + 1 == used { 0 } else { lane + 1 };
        }
        if let Rule::Sum(Tree::Lanes(width)) = self.reduce.rule {
            halve(acc, width as usize);
        }
        // SAFETY: the caller's promise: `len` elements can be written.
        unsafe { std::ptr::copy_nonoverlapping(acc[0].as_ptr(), out, len) };
    }
}

/// Joins a leaf to its lane. Only the first `leaf.len()` elements mean anything.
#[inline(always)]
fn join(rule: Rule, acc: &mut [u32; STRIP], leaf: &[u32]) {
    let float = f32::from_bits;
    let joined = acc.iter_mut().zip(leaf);
    match rule {
        Rule::Sum(_) => joined.for_each(|(a, &x)| *a = (float(*a) + float(x)).to_bits()),
        Rule::Max => joined.for_each(|(a, &x)| *a = numerics::max(float(*a), float(x)).to_bits()),
        Rule::SumInt => joined.for_each(|(a, &x)| *a = a.wrapping_add(x)),
        Rule::MaxInt => joined.for_each(|(a, &x)| *a = (*a as i32).max(x as i32) as u32),
    }
}

/// Combines lanes by halving; lanes behind the last leaf are absent.
#[inline(always)]
fn halve(acc: &mut [[u32; STRIP]], width: usize) {
    let (mut half, mut used) = (width / 2, acc.len());
    while half > 0 {
        if used > half {
            let (low, high) = acc.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(&high[..used - half]) {
                for (a, &b) in low.iter_mut().zip(high) {
                    *a = (f32::from_bits(*a) + f32::from_bits(b)).to_bits();
                }
            }
            used = half;
        }
        half /= 2;
    }
}

/// The largest in the contract's order.
#[inline(always)]
fn largest(leaves: &[f32]) -> f32 {
    let (whole, rest) = leaves.as_chunks::<16>();
    let mut lanes = [f32::NEG_INFINITY; 16];
    for chunk in whole {
        for lane in 0..16 {
            lanes[lane] = numerics::max(lanes[lane], chunk[lane]);
        }
    }
    rest.iter().fold(largest_lane(lanes), |most, &x| numerics::max(most, x))
}

/// The largest of the leaves whose ids are not masked.
#[inline(always)]
fn largest_present(leaves: &[f32], ids: &[u32]) -> f32 {
    let present = |x: f32, id: u32| if id == MASKED { f32::NEG_INFINITY } else { x };
    let (whole, rest) = leaves.as_chunks::<16>();
    let (whole_ids, rest_ids) = ids.as_chunks::<16>();
    let mut lanes = [f32::NEG_INFINITY; 16];
    for (chunk, ids) in whole.iter().zip(whole_ids) {
        for lane in 0..16 {
            lanes[lane] = numerics::max(lanes[lane], present(chunk[lane], ids[lane]));
        }
    }
    let rest = rest.iter().zip(rest_ids);
    rest.fold(largest_lane(lanes), |most, (&x, &id)| numerics::max(most, present(x, id)))
}

#[inline(always)]
fn largest_lane(mut lanes: [f32; 16]) -> f32 {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = numerics::max(lanes[lane], lanes[lane + half]);
        }
    }
    lanes[0]
}
