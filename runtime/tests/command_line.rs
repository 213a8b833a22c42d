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

#[test]
fn devices_are_listed() {
    let cache = tempfile::tempdir().expect("a folder");
    let list = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ds4-run"));
        command.args(["--list-devices", "--json"]).env("XDG_CACHE_HOME", cache.path());
        command.output().expect("the binary is started")
    };
    // The second time, verdicts come from the cache.
    let (first, second) = (list(), list());
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("\"contract\": \"rn32-v1\""));
    assert_eq!(text(&first.stdout), text(&second.stdout));
}

#[test]
fn an_absent_device_exits_with_1() {
    let cache = tempfile::tempdir().expect("a folder");
    for device in ["wgpu:99", "cuda:99", "hip:99"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ds4-run"));
        command.args(["absent.ds4plan", "-p", "a", "--device", device]).env("XDG_CACHE_HOME", cache.path());
        let output = command.output().expect("the binary is started");
        assert_eq!(output.status.code(), Some(1));
        // No such device, or no driver; which one depends on the machine.
        let error = text(&output.stderr);
        assert!(["0620", "0621"].iter().any(|code| error.contains(&format!("error[DS4-{code}]"))), "{error}");
    }
}
