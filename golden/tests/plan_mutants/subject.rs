//! A compiled model whose plan is changed: the checks that a mutant has to pass, and its bits.

use std::path::PathBuf;

use ds4_compiler::assemble::{Compiled, compile};
use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_compiler::same_model::check_model;
use ds4_golden::run::Source;
use ds4_ir::certificate;
use ds4_ir::plan::{check::check, write_plan};
use ds4_ir::rules::Exact;
use ds4_kernels::Target;
use ds4_kernels::plan::check_kernels;
use ds4_runtime::session::{OpenOptions, Session};

use super::edit::Mutant;

/// What refuses a mutant: three stages of `ds4c check PLAN` and `ds4-run --verify`, and what `ds4c check PLAN MODEL` adds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    Lists,
    Certificate,
    Kernels,
    Model,
}

/// Steps of a run: tokens of each. All entry points are among them, and each is followed by steps that read its states.
const STEPS: [usize; 7] = [9, 3, 1, 11, 1, 2, 1];

pub struct Subject {
    pub name: String,
    source: Source,
    path: PathBuf,
    graph: ds4_ir::graph::GraphTables,
    plan: ds4_ir::plan::PlanTables,
    certificate: ds4_ir::certificate::CertificateTables,
    folder: tempfile::TempDir,
    bits: Vec<u32>,
}

impl Subject {
    pub fn new(path: &str, profile: &str, targets: &[Target]) -> Subject {
        let source = Source::open(path).unwrap();
        let options = source.options(|o| (o.context, o.prefill, o.columns) = (96, 16, 3));
        let profile_rows = Profile::find(profile).unwrap();
        let form = Form { targets, fusion: Some(&profile_rows) };
        let Compiled { graph, plan, certificate, .. } =
            compile(&source.checkpoint, &source.model, &options, "model", &form).unwrap();
        let mut subject = Subject {
            name: format!("{path}, {profile}, {} targets", targets.len()),
            source,
            path: std::path::absolute(ds4_golden::data(path)).unwrap(),
            graph,
            plan,
            certificate: certificate.unwrap(),
            folder: tempfile::tempdir().unwrap(),
            bits: Vec::new(),
        };
        subject.bits = subject.run(&subject.mutant()).unwrap();
        subject
    }

    /// The plan as it is.
    pub fn mutant(&self) -> Mutant {
        Mutant { graph: self.graph.clone(), plan: self.plan.clone(), certificate: self.certificate.clone() }
    }

    /// Whether nothing was changed, or only where the tables lie.
    pub fn is_same(&self, mutant: &Mutant) -> bool {
        let lists = |mutant: &Mutant| {
            let plan = mutant.plan.view();
            let tiles = plan.entries.iter().flat_map(|entry| entry.launches.of(plan.launches)).map(|launch| {
                let tiles = plan.regions(launch).iter().map(|region| plan.tiles(region).to_vec());
                (launch.device, launch.dispatches, tiles.collect::<Vec<_>>())
            });
            let lists: Vec<_> = plan.entries.iter().flat_map(|entry| plan.lists(entry)).collect();
            let lists: Vec<Vec<Vec<_>>> = lists.iter().map(|l| l.iter().map(|r| r.to_vec()).collect()).collect();
            (tiles.collect::<Vec<_>>(), lists)
        };
        let own = self.mutant();
        if mutant.graph != own.graph || mutant.certificate != own.certificate {
            return false;
        }
        // Changed lists lie behind the old ones.
        let rest = |mutant: &Mutant| {
            let mut plan = mutant.plan.clone();
            plan.launches.truncate(own.plan.launches.len());
            plan.regions.truncate(own.plan.regions.len());
            plan.region_values.truncate(own.plan.region_values.len());
            plan.region_tiles.truncate(own.plan.region_tiles.len());
            plan.entries.iter_mut().zip(&own.plan.entries).for_each(|(entry, was)| {
                if entry.launches.start as usize >= own.plan.launches.len() {
                    entry.launches = was.launches;
                }
            });
            plan
        };
        rest(mutant) == own.plan && lists_fit(mutant) && lists(mutant) == lists(&own)
    }

    /// Which check refuses a mutant, and with what words.
    pub fn refused(&self, mutant: &Mutant) -> Option<(Stage, String)> {
        let (graph, plan, certificate) = (mutant.graph.view(), mutant.plan.view(), mutant.certificate.view());
        if let Err(fault) = check(&graph, &plan) {
            return Some((Stage::Lists, fault));
        }
        // The certificate is about the graph alone: where both are as they were, so is the answer.
        let proved = mutant.graph == self.graph && mutant.certificate == self.certificate;
        if !proved && let Err(refusal) = certificate::check(&graph, &certificate, Exact::rules()) {
            return Some((Stage::Certificate, refusal.to_string()));
        }
        if let Err(fault) = check_kernels(&graph, &plan, "mutant") {
            return Some((Stage::Kernels, fault.to_string()));
        }
        let source = &self.source;
        let model = check_model(&source.checkpoint, &source.model, &graph, &plan, Some(&certificate), "mutant");
        model.err().map(|fault| (Stage::Model, fault.to_string()))
    }

    /// Where the bits of a mutant differ from those of the plan.
    pub fn difference(&self, mutant: &Mutant) -> Option<String> {
        match self.run(mutant) {
            Err(fault) => Some(fault),
            Ok(bits) if bits.len() != self.bits.len() => Some("there are fewer logits".into()),
            Ok(bits) => {
                let at = bits.iter().zip(&self.bits).position(|(a, b)| a != b)?;
                Some(format!("word {at} of the logits differs"))
            }
        }
    }

    /// What `ds4-run --verify` says of a mutant.
    pub fn verified(&self, mutant: &Mutant) -> Result<Vec<String>, String> {
        let file = self.folder.path().join("mutant.ds4plan");
        let written = write_plan(&file, &mutant.graph, &mutant.plan, Some(&mutant.certificate));
        written.map_err(|fault| fault.to_string())?;
        let model = Some(self.path.clone());
        let open = OpenOptions { threads: Some(1), model, verify: true, ..OpenOptions::default() };
        let session = Session::open(&file, &open).map_err(|fault| fault.to_string())?;
        Ok(session.facts().verified.clone())
    }

    fn run(&self, mutant: &Mutant) -> Result<Vec<u32>, String> {
        let file = self.folder.path().join("mutant.ds4plan");
        let written = write_plan(&file, &mutant.graph, &mutant.plan, Some(&mutant.certificate));
        written.map_err(|fault| fault.to_string())?;
        let open = OpenOptions { threads: Some(1), model: Some(self.path.clone()), ..OpenOptions::default() };
        let mut session = Session::open(&file, &open).map_err(|fault| fault.to_string())?;
        let vocabulary = self.source.model.architecture.vocab_size;
        let mut tokens = (0u32..).map(|i| (i * 37 + i * i * 11) % vocabulary);
        let mut bits = Vec::new();
        for count in STEPS {
            let part: Vec<u32> = tokens.by_ref().take(count).collect();
            session.step(&part, count).map_err(|fault| fault.to_string())?;
            bits.extend(session.logits().iter().map(|x| x.to_bits()));
        }
        Ok(bits)
    }
}

/// Whether the lists of a mutant can be looked at.
fn lists_fit(mutant: &Mutant) -> bool {
    let plan = mutant.plan.view();
    let fits = |run: ds4_ir::Run, len: usize| (run.start as usize + run.len as usize) <= len;
    plan.entries.iter().all(|entry| fits(entry.launches, plan.launches.len()))
        && plan.launches.iter().all(|launch| fits(launch.regions, plan.regions.len()))
}
