//! File tests: `tests/files/*.ds4ir` name the passes to run in their first lines and hold the expected text below a
//! line `; ----`. `BLESS=1 cargo test` rewrites what is expected; the review is the diff.

use std::path::{Path, PathBuf};

use ds4_ir::GraphTables;
use ds4_ir::text::{parse, print};
use ds4_ir::verify::verify;

const SEPARATOR: &str = "; ----\n";

/// What a pass takes and gives.
enum Stage {
    Text(String),
    Tables(Box<GraphTables>),
}

/// Runs one pass of a `; run:` line; the error is what a person is shown.
fn pass(name: &str, input: Stage, file: &str) -> Result<Stage, String> {
    match (name, input) {
        ("parse", Stage::Text(text)) => {
            let tables = parse(&text, file).map_err(|fault| fault.to_string())?;
            Ok(Stage::Tables(Box::new(tables)))
        }
        ("verify", Stage::Tables(tables)) => match verify(&tables.view()) {
            Ok(_) => Ok(Stage::Tables(tables)),
            Err(fault) => Err(fault.to_string()),
        },
        ("print", Stage::Tables(tables)) => Ok(Stage::Text(print(&tables.view()))),
        _ => panic!("{file}: no pass `{name}` here"),
    }
}

/// The text that the passes of a file give: the last one's, or the diagnostic of the one that failed.
fn output(input: &str, file: &str) -> String {
    let passes = input.lines().find_map(|line| line.strip_prefix("; run: "));
    let passes = passes.unwrap_or_else(|| panic!("{file}: a first line `; run: ...` names the passes"));
    let mut stage = Stage::Text(input.into());
    for name in passes.split_whitespace() {
        stage = match pass(name, stage, file) {
            Ok(stage) => stage,
            Err(fault) => return format!("{fault}\n"),
        };
    }
    match stage {
        Stage::Text(text) => text,
        Stage::Tables(_) => "ok\n".into(),
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let entries = std::fs::read_dir(folder).expect("the folder of file tests");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ds4ir"));
    files.sort();
    files
}

#[test]
fn text_files_give_what_they_expect() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in files() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let (input, expected) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
        let found = output(input, &name);
        if bless {
            let text = format!("{}\n{SEPARATOR}{found}", input.trim_end());
            std::fs::write(&path, text).expect("a writable file");
        } else if found != expected {
            wrong.push(format!("{name}:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "BLESS=1 accepts:\n{}", wrong.join("\n"));
}

#[test]
fn text_printed_files_print_as_themselves() {
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let input = text.split(SEPARATOR).next().unwrap_or_default();
        let Ok(tables) = parse(input, "input") else {
            continue;
        };
        let printed = print(&tables.view());
        let again = parse(&printed, "printed").unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        assert_eq!(again, tables, "{}", path.display());
        assert_eq!(print(&again.view()), printed, "{}", path.display());
    }
}

/// The first example of `docs/ir.md` is a printed text, and the page names every operation, type and statement.
#[test]
fn text_is_what_its_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ir.md");
    let page = std::fs::read_to_string(page).expect("docs/ir.md");
    let example = page.split("```\n").nth(1).expect("an example");
    let tables = parse(example, "docs/ir.md").unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(print(&tables.view()), example);
    for op in ds4_ir::Op::ALL {
        assert!(page.contains(&format!("\"{}\"", op.name())), "the grammar lacks {}", op.name());
        let is_explained = page.contains(&format!("`{}`", op.name())) || page.contains(&format!("`{} ", op.name()));
        assert!(is_explained, "no section explains {}", op.name());
    }
}
