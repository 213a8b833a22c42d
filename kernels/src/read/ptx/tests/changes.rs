//! One changed character in each kind of line: the text is refused, or the kernel is another one and shows it, or it is the
//! same but for names.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use ds4_ir::Dim;

use crate::kernel::Kernel;
use crate::machine::{Cells, LaneOrder, Machine, Numbers};
use crate::tests::bench::{D, Random};

use super::super::read;
use super::every;

/// A line without indentation and remark.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default().trim()
}

/// The directive, label or mnemonic of a line, with its guard.
fn head(line: &str) -> String {
    let mut words = code(line).split_whitespace();
    let first = words.next().unwrap_or_default();
    let guard = first.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "%_".contains(c));
    match first {
        ".reg" => format!("{first} {}", words.next().unwrap_or_default()),
        _ if first.starts_with('@') => format!("{guard} {}", words.next().unwrap_or_default()),
        _ if first.starts_with('$') => operand(first).into(),
        _ => first.into(),
    }
}

/// The kind of a line: its head, and what its operands are.
fn kind(line: &str) -> String {
    let operands =
        if code(line).starts_with(['.', '$', '@']) { "" } else { code(line).split_once(' ').unwrap_or_default().1 };
    let operands: Vec<&str> = operands.split_whitespace().map(operand).collect();
    format!("{} {}", head(line), operands.join(" "))
}

/// What an operand is.
fn operand(word: &str) -> &'static str {
    let bare = word.trim_matches(|c: char| ",;:".contains(c));
    let inner = bare.trim_matches(|c: char| "[]".contains(c));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let numbered = inner.starts_with('%') && digits(&inner[2.min(inner.len())..]);
    match inner.trim_end_matches(|c: char| c.is_ascii_digit()) {
        _ if bare.starts_with('[') && numbered => "[numbered]",
        _ if inner.contains('+') => "[named+constant]",
        _ if bare.starts_with("[%") => "[named]",
        _ if inner.starts_with('%') && inner.contains('.') => "special",
        "%r" if numbered => "%r",
        "%f" if numbered => "%f",
        "%c" if numbered => "%c",
        "%a" if numbered => "%a",
        _ if inner.starts_with('%') => "named",
        _ if inner.starts_with("0f") => "float",
        _ if inner.starts_with("0x") => "large",
        _ if digits(inner) => "small",
        _ if inner.starts_with("$if") => {
            if inner.ends_with("else") {
                "if_else"
            } else {
                "if_end"
            }
        }
        _ if inner.starts_with("$for") => {
            if inner.ends_with("head") {
                "for_head"
            } else {
                "for_end"
            }
        }
        _ => "symbol",
    }
}

/// A line with a head that the kernel with every line lacks, so that no change of such a line is tried.
pub(crate) fn untried_line(text: &str) -> Option<String> {
    static TRIED: LazyLock<HashSet<String>> = LazyLock::new(|| super::text().lines().map(head).collect());
    let heads = text.lines().skip(1).map(head);
    heads.into_iter().find(|head| !TRIED.contains(head)).map(|head| format!("no test tries changes of `{head}`"))
}

/// Words of the step's block, by dimension: within the extents' bounds, at them, and beyond.
const STEPS: [[u32; 2]; 3] = [[1, 1], [2, 4], [90, 70]];

fn memory(kernel: &Kernel) -> Vec<Cells<Numbers>> {
    let mut random = Random(77);
    let count = every::ITEMS as usize;
    let mut small: Vec<u32> = random.tame(count).iter().map(|x| (x * 60.0).to_bits()).collect();
    small[..8].copy_from_slice(&[0.5f32, -0.5, 1.5, -1.5, 2.5, -2.5, 0.3, -0.7].map(f32::to_bits));
    let words =
        |random: &mut Random| -> Vec<u32> { (0..count).map(|_| random.next() >> (random.next() % 30)).collect() };
    let arguments = kernel.arguments().map(|(_, _, row)| match row.name.as_str() {
        "floats" | "other" => {
            Cells::of_words(&D, &random.adversarial(count).iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        }
        "small" => Cells::of_words(&D, &small),
        "ids" => Cells::of_words(
            &D,
            &words(&mut random).iter().map(|&w| if w % 3 == 0 { u32::MAX } else { w }).collect::<Vec<_>>(),
        ),
        "words" | "more" => Cells::of_words(&D, &words(&mut random)),
        _ => Cells::unwritten((every::RESULTS * every::ITEMS) as usize),
    });
    arguments.collect()
}

/// The bits of all memory after a run, or the trap.
fn run(kernel: &Kernel, memory: &[Cells<Numbers>], step: [u32; 2]) -> Result<Vec<Option<u32>>, String> {
    let mut cells = memory.to_vec();
    // Places behind the last dimension hold something, too.
    let scalar = |place: Dim| step.get(place.0 as usize - 2).copied().unwrap_or(1 + place.0 % 4);
    let machine = Machine::new(kernel, &D, LaneOrder::Ascending).map_err(|wrong| wrong.to_string())?;
    machine.run(&scalar, &mut cells).map_err(|trap| trap.to_string())?;
    Ok(cells.iter().flat_map(|c| (0..c.len()).map(|at| c.word(&D, at))).collect())
}

/// The kernel without what is only for readers, and with the lengths of workgroup arrays that are at least as long there.
fn nameless(kernel: &Kernel, original: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.name.clear();
    kernel.about.clear();
    kernel.locals.iter_mut().for_each(|row| row.name.clear());
    for (row, original) in kernel.memories.iter_mut().zip(&original.memories) {
        row.name.clear();
        if row.len > original.len {
            row.len = original.len;
        }
    }
    kernel
}

/// Characters that a place may become: some that mean something somewhere, and its neighbours.
fn replacements(c: u8) -> Vec<u8> {
    let mut all = b"17fs%./ ".to_vec();
    all.extend([c.wrapping_add(1), c ^ 1]);
    all.retain(|&new| new != c && (b' '..127).contains(&new));
    all.sort();
    all.dedup();
    all
}

/// What became of changed texts.
#[derive(Default, Debug)]
struct Counts {
    refused: usize,
    trapped: usize,
    changed: usize,
    same: usize,
}

#[test]
fn a_changed_character_is_refused_or_shows() {
    let text = super::text();
    let original = read(&text).unwrap().kernel;
    let memory = memory(&original);
    let wanted = STEPS.map(|step| run(&original, &memory, step).unwrap());
    let mut kinds: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        kinds.entry(kind(line)).or_insert((start, line.trim_end()));
        start += line.len();
    }
    let mut counts = Counts::default();
    let mut silent = Vec::new();
    for &(start, line) in kinds.values() {
        // Behind `//` is a remark.
        let code = line.find("//").unwrap_or(line.len());
        for at in start..start + code {
            for new in replacements(text.as_bytes()[at]) {
                let mut changed = text.clone().into_bytes();
                changed[at] = new;
                let changed = String::from_utf8(changed).unwrap();
                let Ok(found) = read(&changed) else {
                    counts.refused += 1;
                    continue;
                };
                if nameless(&found.kernel, &original) == nameless(&original, &original) {
                    counts.same += 1;
                    continue;
                }
                let mut runs =
                    STEPS.iter().zip(&wanted).map(|(&step, wanted)| (run(&found.kernel, &memory, step), wanted));
                match runs.find(|(got, wanted)| got.as_ref() != Ok(*wanted)) {
                    Some((Err(_), _)) => counts.trapped += 1,
                    Some(_) => counts.changed += 1,
                    None => silent.push(format!("{line}\n{}", &changed[start..start + line.len()])),
                }
            }
        }
    }
    println!("{} kinds of lines: {counts:?}", kinds.len());
    assert!(silent.is_empty(), "{} silent:\n{}", silent.len(), silent.join("\n"));
    assert!(counts.refused > 10_000 && counts.trapped >= 10 && counts.changed > 200, "{counts:?}");
}
