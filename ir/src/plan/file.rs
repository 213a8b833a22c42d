//! Writing and opening plan files.

use std::path::Path;

use crate::certificate::{self, Certificate, CertificateTables, Report};
use crate::diagnostic::codes;
use crate::graph::{Graph, GraphTables};
use crate::plan::tables::{Plan, PlanTables};
use crate::plan::{CONTRACT, VERSION};
use crate::rules::Exact;
use crate::tables::Section;
use crate::{Diagnostic, Place};

/// The first bytes of a plan file.
pub const MAGIC: [u8; 8] = *b"DS4PLAN\n";
const ALIGN: usize = 64;
/// Number of the first section of a certificate; they come last.
const FIRST_OF_CERTIFICATE: u32 = 300;

/// The header: the first 64 bytes.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    sections: u32,
    /// Bytes of the whole file.
    size: u64,
    contract: [u8; 8],
    /// BLAKE3 of the section table.
    table_hash: [u8; 32],
}

/// A row of the section table.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct SectionRow {
    number: u32,
    entry: u32,
    offset: u64,
    len: u64,
    reserved: u64,
    hash: [u8; 32],
}

fn contract_bytes() -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..CONTRACT.len()].copy_from_slice(CONTRACT.as_bytes());
    bytes
}

fn aligned(n: usize) -> usize {
    n.next_multiple_of(ALIGN)
}

/// The bytes of a plan file without a certificate. The same tables give the same bytes.
pub fn plan_bytes(graph: &GraphTables, plan: &PlanTables) -> Vec<u8> {
    certified_bytes(graph, plan, None)
}

/// The bytes of a plan file, with the certificate of its graph if there is one.
pub fn certified_bytes(graph: &GraphTables, plan: &PlanTables, certificate: Option<&CertificateTables>) -> Vec<u8> {
    let (graph, plan) = (graph.view(), plan.view());
    let mut sections: Vec<Section<'_>> = graph.sections().into_iter().chain(plan.sections()).collect();
    let certificate = certificate.map(CertificateTables::view);
    sections.extend(certificate.iter().flat_map(|c| c.sections()));
    let mut at = aligned(size_of::<Header>() + sections.len() * size_of::<SectionRow>());
    let mut rows = Vec::new();
    for s in &sections {
        rows.push(SectionRow {
            number: s.number,
            entry: s.entry as u32,
            offset: at as u64,
            len: s.bytes.len() as u64,
            reserved: 0,
            hash: *blake3::hash(s.bytes).as_bytes(),
        });
        at = aligned(at + s.bytes.len());
    }
    let table: &[u8] = bytemuck::cast_slice(&rows);
    let header = Header {
        magic: MAGIC,
        version: VERSION,
        sections: rows.len() as u32,
        size: at as u64,
        contract: contract_bytes(),
        table_hash: *blake3::hash(table).as_bytes(),
    };
    let mut bytes = Vec::with_capacity(at);
    bytes.extend_from_slice(bytemuck::bytes_of(&header));
    bytes.extend_from_slice(table);
    for (row, s) in rows.iter().zip(&sections) {
        bytes.resize(row.offset as usize, 0);
        bytes.extend_from_slice(s.bytes);
    }
    bytes.resize(at, 0);
    bytes
}

/// Writes a plan to a temporary name beside `path` and renames it: `path` holds the old file or the whole new one.
pub fn write_plan(
    path: &Path,
    graph: &GraphTables,
    plan: &PlanTables,
    certificate: Option<&CertificateTables>,
) -> Result<u64, Diagnostic> {
    let bytes = certified_bytes(graph, plan, certificate);
    crate::output::write_whole(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// The bytes of a plan with their sections found and hashes checked; the tables are viewed in place.
pub struct PlanBytes<B> {
    bytes: B,
    name: String,
    sections: Vec<(u32, std::ops::Range<usize>)>,
}

impl<B: AsRef<[u8]>> PlanBytes<B> {
    /// Checks header, version, section table and hashes. `bytes` are 64-byte aligned (a mapping or an aligned buffer).
    pub fn open(bytes: B, name: &str) -> Result<Self, Diagnostic> {
        let sections = sections_of(bytes.as_ref(), name)?;
        Ok(PlanBytes { bytes, name: name.to_string(), sections })
    }

    fn find(&self, number: u32) -> Option<&[u8]> {
        let index = self.sections.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        Some(&self.bytes.as_ref()[self.sections[index].1.clone()])
    }

    /// The graph and the plan's own tables, not yet verified: use [`PlanBytes::verified`].
    pub fn tables(&self) -> Result<(Graph<'_>, Plan<'_>), Diagnostic> {
        let missing = |(number, column): (u32, &str)| {
            damaged(&self.name, format!("section {number} (`{column}`) is missing or has a wrong length"))
        };
        let graph = Graph::from_sections(|n| self.find(n)).map_err(missing)?;
        let plan = Plan::from_sections(|n| self.find(n)).map_err(missing)?;
        Ok((graph, plan))
    }

    /// The tables, with every index, the graph, the launches and the memory checked.
    pub fn verified(&self) -> Result<(Graph<'_>, Plan<'_>, crate::verify::Facts), Diagnostic> {
        let (graph, plan) = self.tables()?;
        let facts = super::check::check(&graph, &plan).map_err(|fault| damaged(&self.name, fault))?;
        Ok((graph, plan, facts))
    }

    /// The certificate of the graph, if there is one; not yet checked: use [`PlanBytes::proved`].
    pub fn certificate(&self) -> Result<Option<Certificate<'_>>, Diagnostic> {
        if self.sections.last().is_none_or(|(number, _)| *number < FIRST_OF_CERTIFICATE) {
            return Ok(None);
        }
        let found = Certificate::from_sections(|n| self.find(n));
        found.map(Some).map_err(|(number, column)| {
            damaged(&self.name, format!("section {number} (`{column}`) is missing or has a wrong length"))
        })
    }

    /// What the certificate proves of the plan's graph, every step of it replayed; `None` for a plan whose graph is the
    /// model's own.
    ///
    /// # Errors
    /// The plan is damaged, its certificate proves nothing, or it was rewritten and has none.
    pub fn proved(&self, exact: &Exact) -> Result<Option<Report>, Diagnostic> {
        let (graph, plan, _) = self.verified()?;
        let refused = |found: String| {
            Diagnostic::new(codes::CERTIFICATE_REFUSED, "the certificate of the plan is refused")
                .at(Place::file(&self.name))
                .wanted("a proof that the plan's graph has the bits of the model's", found)
                .help(
                    "compile the model again with `ds4c compile`; if this stays, it is a fault of ours: please report it",
                )
        };
        let Some(certificate) = self.certificate()? else {
            let rewritten = plan.option("fusion").is_some_and(|fusion| fusion != "off");
            return if rewritten { Err(refused("none, though the plan is fused".into())) } else { Ok(None) };
        };
        let checked = certificate::check(&graph, &certificate, exact);
        checked.map(Some).map_err(|refusal| refused(refusal.to_string()))
    }

    /// Number, name-less range and length of every section, for reports.
    pub fn section_sizes(&self) -> Vec<(u32, usize)> {
        self.sections.iter().map(|(n, range)| (*n, range.len())).collect()
    }
}

fn damaged(name: &str, what: String) -> Diagnostic {
    Diagnostic::new(codes::PLAN_DAMAGED, format!("the plan is damaged: {what}"))
        .at(Place::file(name))
        .help("compile the model again with `ds4c compile`")
}

fn sections_of(bytes: &[u8], name: &str) -> Result<Vec<(u32, std::ops::Range<usize>)>, Diagnostic> {
    let header = header_of(bytes, name)?;
    let start = size_of::<Header>();
    let table_len = (header.sections as usize).checked_mul(size_of::<SectionRow>());
    let table = table_len.and_then(|len| bytes.get(start..start.checked_add(len)?));
    let table = table.ok_or_else(|| damaged(name, "the section table is cut off".into()))?;
    if blake3::hash(table).as_bytes() != &header.table_hash {
        return Err(damaged(name, "the section table does not match its hash".into()));
    }
    let mut sections = Vec::new();
    let mut end = start + table.len();
    for chunk in table.chunks_exact(size_of::<SectionRow>()) {
        let row: SectionRow = bytemuck::pod_read_unaligned(chunk);
        let range = section_range(&row, bytes.len())
            .ok_or_else(|| damaged(name, format!("section {} lies outside of the file", row.number)))?;
        if blake3::hash(&bytes[range.clone()]).as_bytes() != &row.hash {
            return Err(damaged(name, format!("section {} does not match its hash", row.number)));
        }
        if range.start < end || bytes[end..range.start].iter().any(|&b| b != 0) {
            return Err(damaged(name, format!("section {} does not follow the one before it", row.number)));
        }
        end = range.end;
        sections.push((row.number, range));
    }
    if !sections.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(damaged(name, "the sections are not in order".into()));
    }
    if bytes[end..].iter().any(|&b| b != 0) || bytes.len() != aligned(end) {
        return Err(damaged(name, "there are bytes behind the last section".into()));
    }
    Ok(sections)
}

fn section_range(row: &SectionRow, size: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(row.offset).ok()?;
    let end = start.checked_add(usize::try_from(row.len).ok()?)?;
    (start.is_multiple_of(ALIGN) && end <= size && row.reserved == 0).then_some(start..end)
}

/// What a file that is no plan begins with, in words where they are known.
fn begins_with(magic: &[u8; 8]) -> String {
    if magic.starts_with(b"GGUF") { "a GGUF file".into() } else { format!("a file that begins {magic:02x?}") }
}

fn header_of(bytes: &[u8], name: &str) -> Result<Header, Diagnostic> {
    let Some(header) = bytes.get(..size_of::<Header>()) else {
        return Err(damaged(name, "it is shorter than its header".into()));
    };
    let header: Header = bytemuck::pod_read_unaligned(header);
    if header.magic != MAGIC {
        return Err(Diagnostic::new(codes::PLAN_MAGIC, "this is no plan file")
            .at(Place::file(name))
            .wanted("a file that `ds4c compile` wrote", begins_with(&header.magic))
            .help("give the plan, not the model; `ds4c compile MODEL -o PLAN` makes one"));
    }
    if header.version != VERSION {
        return Err(Diagnostic::new(codes::PLAN_VERSION, "the plan was written by another version")
            .at(Place::file(name))
            .wanted(format!("plan format {VERSION}"), format!("plan format {}", header.version))
            .help("compile the model again with this version's `ds4c compile`"));
    }
    if header.contract != contract_bytes() {
        return Err(Diagnostic::new(codes::PLAN_CONTRACT, "the plan obeys another numeric contract")
            .at(Place::file(name))
            .wanted(CONTRACT, String::from_utf8_lossy(&header.contract).trim_end_matches('\0'))
            .help("compile the model again with this version's `ds4c compile`"));
    }
    if header.size != bytes.len() as u64 {
        return Err(damaged(name, format!("it has {} bytes, its header says {}", bytes.len(), header.size)));
    }
    Ok(header)
}
