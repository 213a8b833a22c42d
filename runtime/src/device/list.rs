//! `--list-devices`: what this machine has, with limits and the probe's verdict.

use ds4_ir::plan::CONTRACT;
use serde_json::{Value, json};

use super::cache::Cache;
use super::driver::Driver;
use super::native::{self, Interface};
use super::probe::{self, Verdict};
use super::wgpu::{About, Adapters, Device};
use crate::cpu::products::Isa;

/// What is known of a device through wgpu.
#[derive(Clone, Debug)]
pub struct Row {
    /// The device and its limits.
    pub about: About,
    /// The probe's verdict, or why the device could not be asked.
    pub verdict: Result<Verdict, String>,
}

/// The devices of a machine.
#[derive(Clone, Debug)]
pub struct List {
    /// Threads that the CPU runs at once.
    pub threads: usize,
    /// Instruction sets that the CPU executor uses, the widest last.
    pub isas: Vec<&'static str>,
    /// Devices through wgpu, in the order of their numbers; or why there are none.
    pub wgpu: Result<Vec<Row>, String>,
    /// Devices of NVIDIA in the order of their numbers, or why there are none.
    pub cuda: Result<Vec<native::About>, String>,
    /// Devices of AMD, likewise.
    pub hip: Result<Vec<native::About>, String>,
}

impl List {
    /// Asks this machine. Devices that were not probed yet are probed, and the verdict kept in `cache`.
    pub fn of_machine(cache: &Cache) -> Self {
        List {
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            isas: Isa::available().map(Isa::name).collect(),
            wgpu: wgpu_rows(cache),
            cuda: native::devices(Interface::Cuda),
            hip: native::devices(Interface::Hip),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("cpu      {} threads, {}\n", self.threads, self.isas.join(", "));
        text += &indented(CONTRACT, "exact");
        match &self.wgpu {
            Ok(rows) => rows.iter().enumerate().for_each(|(number, row)| text += &row.text(number)),
            Err(reason) => text += &format!("wgpu     absent: {reason}\n"),
        }
        for (interface, found) in [(Interface::Cuda, &self.cuda), (Interface::Hip, &self.hip)] {
            match found {
                Ok(all) => {
                    all.iter().enumerate().for_each(|(number, about)| text += &native_text(interface, number, about))
                }
                Err(reason) => text += &format!("{:8} absent: {reason}\n", interface.name()),
            }
        }
        text
    }

    /// For programs: one object.
    pub fn json(&self) -> String {
        let natives = |found: &Result<Vec<native::About>, String>| match found {
            Ok(all) => Value::Array(all.iter().map(native_json).collect()),
            Err(reason) => json!({ "absent": reason }),
        };
        let wgpu = match &self.wgpu {
            Ok(rows) => Value::Array(rows.iter().map(Row::json).collect()),
            Err(reason) => json!({ "absent": reason }),
        };
        let object = json!({
            "contract": CONTRACT,
            "cpu": { "threads": self.threads, "isas": self.isas, "exact": true },
            "wgpu": wgpu,
            "cuda": natives(&self.cuda),
            "hip": natives(&self.hip),
        });
        format!("{object:#}\n")
    }
}

fn wgpu_rows(cache: &Cache) -> Result<Vec<Row>, String> {
    Driver::Vulkan.find()?;
    let adapters = Adapters::find();
    let rows: Vec<_> = adapters
        .about()
        .enumerate()
        .map(|(number, about)| Row { about: about.clone(), verdict: verdict(&adapters, number, cache) })
        .collect();
    match rows.is_empty() {
        true => Err("Vulkan has no device".into()),
        false => Ok(rows),
    }
}

fn verdict(adapters: &Adapters, number: usize, cache: &Cache) -> Result<Verdict, String> {
    let probed = Device::open(adapters, number, cache).and_then(|device| {
        let verdict = probe::verdict(&device, cache)?;
        device.keep_pipelines();
        Ok(verdict)
    });
    probed.map_err(|diagnostic| match diagnostic.found.is_empty() {
        true => diagnostic.message,
        false => format!("{}: {}", diagnostic.message, diagnostic.found),
    })
}

impl Row {
    fn text(&self, number: usize) -> String {
        let About { name, kind, driver, driver_info, limits, features, .. } = &self.about;
        let [least, most] = limits.subgroup;
        let subgroup = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let verdict = match &self.verdict {
            Ok(verdict) => verdict_line(verdict),
            Err(reason) => format!("refused: {reason}"),
        };
        [
            format!("wgpu:{number:<4}{name} ({kind})\n"),
            indented("driver", &format!("{driver} {driver_info}")),
            indented(
                "buffers",
                &format!(
                    "{}, {} in a binding, {} in a kernel",
                    size(limits.buffer_bytes),
                    size(limits.binding_bytes),
                    limits.storage_buffers
                ),
            ),
            indented(
                "groups",
                &format!(
                    "{} threads, {}, subgroups of {subgroup}",
                    limits.workgroup_threads,
                    size(limits.workgroup_bytes.into())
                ),
            ),
            indented("features", &features.join(", ")),
            indented(CONTRACT, &verdict),
        ]
        .concat()
    }

    fn json(&self) -> Value {
        let (verdict, failed): (String, Vec<_>) = match &self.verdict {
            Ok(verdict) => (verdict_line(verdict), verdict.failures().collect()),
            Err(reason) => (format!("refused: {reason}"), Vec::new()),
        };
        let iterations = self.verdict.as_ref().ok().map(|verdict| verdict.iterations).filter(|&n| n != u32::MAX);
        let exact = matches!(&self.verdict, Ok(verdict) if verdict.failures().next().is_none());
        let failures = failed.iter().map(|(item, failure)| json!({ "item": item, "failure": failure }));
        json!({
            "device": self.about,
            "exact": exact,
            "verdict": verdict,
            "iterations": iterations,
            "failures": failures.collect::<Vec<_>>(),
        })
    }
}

fn native_text(interface: Interface, number: usize, about: &native::About) -> String {
    let [major, minor] = about.driver;
    let kind = format!("{}:{number}", interface.name());
    [
        format!("{kind:9}{}\n", about.name),
        indented("driver", &format!("{} {major}.{minor}", interface.name())),
        indented("memory", &size(about.bytes)),
        indented("executes", &about.architecture.to_string()),
    ]
    .concat()
}

fn native_json(about: &native::About) -> Value {
    let [major, minor] = about.driver;
    json!({
        "name": about.name,
        "driver": format!("{major}.{minor}"),
        "memory_bytes": about.bytes,
        "architecture": about.architecture.to_string(),
    })
}

fn verdict_line(verdict: &Verdict) -> String {
    let failed: Vec<_> = verdict.failures().map(|(item, _)| item).collect();
    let items = verdict.outcomes.len();
    match failed.is_empty() {
        true => format!("exact, {items} of {items} items of the probe{}", loops(verdict.iterations)),
        false => format!("refused: {} of {items} items of the probe fail: {}", failed.len(), failed.join(", ")),
    }
}

/// A remark on a device that ends long loops.
fn loops(iterations: u32) -> String {
    match iterations {
        u32::MAX => String::new(),
        n => format!("; a lane's loops end behind {n} iterations"),
    }
}

fn indented(name: &str, value: &str) -> String {
    format!("         {name:9}{value}\n")
}

/// Bytes in a unit that keeps the number short, rounded down.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::probe::{Failure, Outcome};
    use crate::device::wgpu::tests::toy;

    fn machine() -> List {
        let failure = Failure { inputs: [1, 2, 3], wanted: 4, got: 5, wrong: 6, of: 65536 };
        let outcome = |item: &str, failure| Outcome { item: item.into(), failure };
        let good = Verdict { outcomes: vec![outcome("sum", None), outcome("mac", None)], iterations: u32::MAX };
        let bad = Verdict { outcomes: vec![outcome("sum", None), outcome("mac", Some(failure))], iterations: 65_535 };
        let rows = [Ok(good), Ok(bad), Err("the device lacks what strict arithmetic needs: no Vulkan 1.2".into())];
        List {
            threads: 2,
            isas: vec!["baseline", "avx2"],
            wgpu: Ok(rows.map(|verdict| Row { about: toy(), verdict }).into()),
            cuda: Err("libcuda.so.1: cannot open shared object file: No such file or directory".into()),
            hip: Ok(vec![native::About {
                name: "Toy Instinct".into(),
                bytes: 64 << 30,
                architecture: native::Architecture::Target("gfx90a:sramecc+:xnack-".into()),
                driver: [6, 2],
                grid: [65535, 65535],
            }]),
        }
    }

    #[test]
    fn forms_of_a_list() {
        let list = machine();
        let without = List { wgpu: Err("Vulkan has no device".into()), ..list.clone() };
        insta::assert_snapshot!([list.text(), without.text(), list.json()].join("\n"));
    }

    #[test]
    fn this_machine_is_listed() {
        let text = List::of_machine(&Cache::none()).text();
        println!("{text}");
        assert!(text.starts_with("cpu ") && text.contains("\ncuda") && text.contains("\nhip"));
    }
}
