//! Changes of what ties launches to kernels.

use ds4_golden::proofs::trials::Words;

use super::edit::pick;
use super::{Kind, harmless, kind};

pub const KINDS: &[Kind] = &[
    kind("kernel of a launch", |m, _, w| {
        let (n, kernels) = (m.plan.dispatches.len(), m.plan.kernels.len());
        m.plan.dispatches[pick(w, n)].kernel.0 = pick(w, kernels) as u32;
        Some(String::new())
    }),
    kind("kernels of launches exchanged", |m, e, w| {
        let run = m.plan.entries[e].launches;
        let at = |w: &mut Words| (run.start as usize) + pick(w, run.len as usize);
        let (a, b) = (at(w), at(w));
        let other = m.plan.launches[a].dispatches;
        m.plan.launches[a].dispatches = std::mem::replace(&mut m.plan.launches[b].dispatches, other);
        Some(format!("{a} and {b}"))
    }),
    kind("kernels of a launch dropped", |m, e, w| {
        let run = m.plan.entries[e].launches;
        m.plan.launches[run.start as usize + pick(w, run.len as usize)].dispatches.len = 0;
        Some(String::new())
    }),
    kind("kernel of a launch run twice", |m, e, w| {
        let run = m.plan.entries[e].launches;
        let at = run.start as usize + pick(w, run.len as usize);
        let rows = m.plan.launches[at].dispatches.of(&m.plan.dispatches).repeat(2);
        m.plan.launches[at].dispatches = ds4_ir::Run::push(&mut m.plan.dispatches, &rows);
        Some(at.to_string())
    }),
    kind("arguments exchanged", |m, _, w| {
        let n = m.plan.dispatches.len();
        let run = m.plan.dispatches[pick(w, n)].bindings;
        let at = |w: &mut Words| run.start as usize + pick(w, run.len as usize);
        let (a, b) = (at(w), at(w));
        m.plan.bindings.swap(a, b);
        Some(format!("{a} and {b}"))
    }),
    kind("argument bound to another", |m, _, w| {
        let n = m.plan.bindings.len();
        m.plan.bindings[pick(w, n)] = m.plan.bindings[pick(w, n)];
        Some(String::new())
    }),
    kind("number of arguments", |m, _, w| {
        let n = m.plan.dispatches.len();
        m.plan.dispatches[pick(w, n)].bindings.len -= 1;
        Some(String::new())
    }),
    kind("name of a kernel", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].name = m.plan.intern("another name");
        Some(String::new())
    }),
    kind("entry point of a kernel", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].entry = m.plan.kernels[pick(w, n)].entry;
        Some(String::new())
    }),
    kind("lanes of a kernel", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].lanes ^= 1 << (5 + pick(w, 3));
        Some(String::new())
    }),
    kind("memory of a workgroup", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].workgroup_bytes ^= 64;
        Some(String::new())
    }),
    kind("iterations of a kernel", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].iterations ^= 1 << pick(w, 16);
        Some(String::new())
    }),
    kind("lanes that exchange values", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].exchange ^= 16 << pick(w, 2);
        Some(String::new())
    }),
    kind("argument that is written", |m, _, w| {
        let n = m.plan.kernels.len();
        m.plan.kernels[pick(w, n)].written ^= 1 << pick(w, 6);
        Some(String::new())
    }),
    kind("axis of a grid", |m, _, w| {
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut m.plan.extents);
        let at = pick(w, words.len());
        words[at] = [words[at] ^ 1, words[at].wrapping_add(1), words[at] / 2, 3][pick(w, 4)];
        Some(at.to_string())
    }),
    kind("axes of a part", |m, _, w| {
        let n = m.plan.grid_parts.len();
        let part = &mut m.plan.grid_parts[pick(w, n)];
        (part.len > 0).then(|| part.len -= 1)?;
        Some(String::new())
    }),
    kind("parts of a grid", |m, _, w| {
        let n = m.plan.kernels.len();
        let grid = &mut m.plan.kernels[pick(w, n)].grid;
        *grid =
            [ds4_ir::Run { len: grid.len - 1, ..*grid }, ds4_ir::Run { start: grid.start ^ 1, ..*grid }][pick(w, 2)];
        Some(String::new())
    }),
    kind("word of the step's block", |m, _, w| {
        let n = m.plan.step_dims.len();
        m.plan.step_dims[pick(w, n)].0 = pick(w, m.graph.dims.len()) as u32;
        Some(String::new())
    }),
    kind("texts exchanged", |m, _, w| {
        let n = m.plan.sources.len();
        let (a, b) = (pick(w, n), pick(w, n));
        m.plan.sources.swap(a, b);
        Some(format!("{a} and {b}"))
    }),
    kind("character of a text", |m, _, w| {
        let at = pick(w, m.plan.source_text.len());
        m.plan.source_text[at] = b"0123456789+-*/<>()v "[pick(w, 20)];
        Some(at.to_string())
    }),
    kind("target", |m, _, w| {
        m.plan.targets[0] = m.plan.intern(["ptx", "another"][pick(w, 2)]);
        Some(String::new())
    }),
    kind("limits of fusion", |m, _, w| {
        let key = ["fusion.lanes", "fusion.workgroup_bytes", "fusion"][pick(w, 3)];
        let value = m.plan.intern(["64", "1024", "off", "x", "0", "7", "4294967295"][pick(w, 7)]);
        let plan = m.plan.view();
        let at = plan.options.iter().position(|row| plan.str(row.key) == key)?;
        m.plan.options[at].value = value;
        Some(key.into())
    }),
    harmless("tables that nothing refers to", |m, _, _| {
        let row = *m.plan.bindings.last()?;
        m.plan.bindings.push(row);
        Some(String::new())
    }),
];
