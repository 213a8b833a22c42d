//! What every text begins with: addresses, the workgroup's number, extents, and the way out for workgroups behind the grid.

use crate::emit::structured::constant_count;
use crate::kernel::{ExtentRow, Operator, Part, Space};

use super::body::Writer;
use super::instruction::{self, word};
use super::registers::Class;

impl Writer<'_> {
    /// An operator on words, in a numbered register.
    fn words(&mut self, op: Operator, x: String, y: String) -> String {
        let to = self.registers.numbered(Class::Word);
        self.operator(op, &to, &[x, y]);
        to
    }

    /// Addresses of the step's block, the arguments and the workgroup's arrays, each in the register of its name.
    pub(super) fn parameters(&mut self) {
        let kernel = self.kernel;
        self.registers.declare(Class::Address, "%step");
        self.line("ld.param.u64 %step, [step];");
        for (i, row) in kernel.memories.iter().enumerate() {
            let name = self.memories[i].clone();
            self.registers.declare(Class::Address, &format!("%{name}"));
            match row.space {
                Space::Workgroup => self.line(&format!("mov.u64 %{name}, {name};")),
                _ => self.line(&format!("ld.param.u64 %{name}, [{name}];")),
            }
        }
    }

    /// The lane, and the number of the workgroup in the folded grid.
    pub(super) fn place_in_grid(&mut self) {
        self.registers.declare(Class::Word, "%lane");
        self.registers.declare(Class::Word, "%number");
        self.line("mov.u32 %lane, %tid.x;");
        let [x, y, width] = ["%ctaid.x", "%ctaid.y", "%nctaid.x"].map(|special| {
            let to = self.registers.numbered(Class::Word);
            self.line(&format!("mov.u32 {to}, {special};"));
            to
        });
        let rows = self.words(Operator::MulInt, y, width);
        self.operator(Operator::AddInt, "%number", &[x, rows]);
    }

    /// Names the extents that the step chooses.
    pub(super) fn extents(&mut self) -> Option<()> {
        for (i, row) in self.kernel.extents.iter().enumerate() {
            self.extents[i] = match row.is_constant() {
                Some(n) => word(n),
                None => self.extent(row, &format!("extent{i}"))?,
            };
        }
        Some(())
    }

    fn extent(&mut self, row: &ExtentRow, name: &str) -> Option<String> {
        let offset = 4 * self.block.place(row.scalar?)?;
        let scalar = self.registers.numbered(Class::Word);
        self.line(&format!("ld.global.b32 {scalar}, [%step+{offset}];"));
        let mut steps = vec![("min.u32", row.most)];
        if row.times != 1 {
            steps.push(("mul.lo.u32", row.times));
        }
        if row.per != 1 {
            steps.push(("add.u32", row.per - 1));
            steps.push(("div.u32", row.per));
        }
        let mut value = scalar;
        for (i, (name_of_step, by)) in steps.iter().enumerate() {
            let to = match i + 1 == steps.len() {
                true => self.registers.named(Class::Word, name),
                false => self.registers.numbered(Class::Word),
            };
            self.line(&format!("{name_of_step} {to}, {value}, {};", word(*by)));
            value = to;
        }
        Some(value)
    }

    /// The bodies, each where the workgroup's number belongs to its part.
    pub(super) fn parts(&mut self) {
        let kernel = self.kernel;
        match &kernel.parts[..] {
            [part] => {
                let axes = self.axes(part);
                let total = self.product(&axes);
                let inside = self.registers.numbered(Class::Truth);
                self.operator(Operator::Below, &inside, &["%number".into(), total]);
                self.line(&format!("@!{inside} ret;"));
                self.part(part, "%number");
            }
            parts => self.side_by_side(parts),
        }
    }

    /// Parts beside each other: the workgroups that come before are taken off the number one part after the other; those
    /// behind the last have nothing to do.
    fn side_by_side(&mut self, parts: &[Part]) {
        let counts: Vec<String> = parts.iter().enumerate().map(|(i, part)| self.part_count(part, i)).collect();
        let mut number = "%number".to_string();
        let mut open = Vec::new();
        for (i, (part, count)) in parts.iter().zip(counts).enumerate() {
            let here = self.registers.numbered(Class::Truth);
            self.operator(Operator::Below, &here, &[number.clone(), count.clone()]);
            let label = self.labels();
            open.push(label);
            let last = i + 1 == parts.len();
            self.line(&format!("@!{here} bra $if{label}_{};", if last { "end" } else { "else" }));
            self.inside(|w| w.part(part, &number));
            if !last {
                self.inside(|w| w.line(&format!("bra $if{label}_end;")));
                self.line(&format!("$if{label}_else:"));
                self.depth += 1;
                let next = self.registers.named(Class::Word, &format!("number{}", i + 1));
                self.operator(Operator::SubInt, &next, &[number, count]);
                number = next;
            }
        }
        self.depth += 1;
        for label in open.into_iter().rev() {
            self.depth -= 1;
            self.line(&format!("$if{label}_end:"));
        }
    }

    /// The number of a part's workgroups, in a register of its own if it takes a product.
    fn part_count(&mut self, part: &Part, number: usize) -> String {
        if let Some(count) = constant_count(self.kernel, part) {
            return word(count);
        }
        let axes = self.axes(part);
        let Some((last, [_, ..])) = axes.split_last() else { return self.product(&axes) };
        let before = self.product(&axes[..axes.len() - 1]);
        let name = self.registers.named(Class::Word, &format!("count{number}"));
        self.operator(Operator::MulInt, &name, &[before, last.clone()]);
        name
    }

    fn axes(&self, part: &Part) -> Vec<String> {
        part.grid.iter().map(|e| self.extents[e.0 as usize].clone()).collect()
    }

    fn product(&mut self, axes: &[String]) -> String {
        let product = |total: Option<String>, axis: &String| match total {
            None => Some(axis.clone()),
            Some(total) => Some(self.words(Operator::MulInt, total, axis.clone())),
        };
        axes.iter().fold(None, product).unwrap_or_else(|| word(1))
    }

    /// The coordinates of a workgroup, its number in the part split by the part's axes, and what it does.
    fn part(&mut self, part: &Part, number: &str) {
        let axes = self.axes(part);
        self.groups = vec![String::new(); axes.len()];
        let mut rest = number.to_string();
        for axis in (1..axes.len()).rev() {
            let args = [rest, axes[axis].clone()];
            self.groups[axis] = self.registers.named(Class::Word, &format!("group{axis}"));
            self.line(&instruction::operator(Operator::RemInt, &self.groups[axis], &args));
            rest = self.registers.named(Class::Word, &format!("group{}", axis - 1));
            self.operator(Operator::DivInt, &rest, &args);
        }
        if let Some(first) = self.groups.first_mut() {
            *first = rest;
        }
        self.statements(part.body);
    }
}
