//! The parts of a plan in a form that can be changed.

use ds4_golden::proofs::trials::Words;
use ds4_ir::certificate::CertificateTables;
use ds4_ir::graph::GraphTables;
use ds4_ir::plan::{LaunchRow, PlanTables, RegionRow};
use ds4_ir::{Run, Value};

/// A plan that is changed.
pub struct Mutant {
    pub graph: GraphTables,
    pub plan: PlanTables,
    pub certificate: CertificateTables,
}

/// A region: its values and its tiles.
pub type Region = (Vec<Value>, Vec<u32>);

/// A launch: its regions, and the row that it came from.
#[derive(Clone)]
pub struct Launch {
    pub regions: Vec<Region>,
    pub row: LaunchRow,
}

pub fn pick(words: &mut Words, len: usize) -> usize {
    words.word() as usize % len.max(1)
}

impl Mutant {
    /// The launches of an entry point.
    pub fn launches(&self, entry: usize) -> Vec<Launch> {
        let plan = self.plan.view();
        let region = |row: &RegionRow| (plan.values(row).to_vec(), plan.tiles(row).to_vec());
        let launch = |row: &LaunchRow| Launch { regions: plan.regions(row).iter().map(region).collect(), row: *row };
        plan.entries[entry].launches.of(plan.launches).iter().map(launch).collect()
    }

    /// Replaces the launches of an entry point.
    pub fn put(&mut self, entry: usize, launches: &[Launch]) {
        let mut rows = Vec::new();
        for launch in launches {
            let regions: Vec<RegionRow> = launch
                .regions
                .iter()
                .map(|(values, tiles)| RegionRow {
                    values: Run::push(&mut self.plan.region_values, values),
                    tiles: Run::push(&mut self.plan.region_tiles, tiles),
                })
                .collect();
            rows.push(LaunchRow { regions: Run::push(&mut self.plan.regions, &regions), ..launch.row });
        }
        self.plan.entries[entry].launches = Run::push(&mut self.plan.launches, &rows);
    }

    /// The places of an entry point's slots.
    pub fn slots(&self, entry: usize) -> std::ops::Range<usize> {
        let run = self.plan.entries[entry].slots;
        run.start as usize..(run.start + run.len) as usize
    }

    /// A random region: launch, and place there.
    pub fn region(launches: &[Launch], words: &mut Words) -> (usize, usize) {
        let launch = pick(words, launches.len());
        (launch, pick(words, launches[launch].regions.len()))
    }
}

/// Puts a value into a region, in its order.
pub fn insert(region: &mut Region, v: Value) {
    if let Err(at) = region.0.binary_search(&v) {
        region.0.insert(at, v);
    }
}
