//! The built binary: exit codes, and what goes to which output.

use std::process::{Command, Output};

fn ds4_run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ds4-run")).args(arguments).output().expect("the binary is started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("outputs are UTF-8")
}

#[test]
fn help_goes_to_standard_output() {
    let output = ds4_run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("Examples:"));
    assert!(output.stderr.is_empty());
}

#[test]
fn wrong_usage_exits_with_2() {
    let lines: [&[&str]; 4] =
        [&[], &["a.ds4plan"], &["a.ds4plan", "-p", "a", "--seed", "1"], &["a.ds4plan", "--bench", "--ids"]];
    for arguments in lines {
        let output = ds4_run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && text(&output.stderr).starts_with("error: "));
    }
}

#[test]
fn a_missing_plan_exits_with_1() {
    let output = ds4_run(&["absent.ds4plan", "-p", "a"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let error = text(&output.stderr);
    assert!(error.starts_with("error[DS4-0101]") && error.contains("absent.ds4plan"), "{error}");
}

#[test]
fn a_file_that_is_no_plan_exits_with_1() {
    let output = ds4_run(&[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "--bench"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error[DS4-0401]"));
}
