#[test]
#[ignore]
fn dump() {
    std::fs::create_dir_all("/tmp/smt-v").unwrap();
    for rule in super::scalar::all().chain(super::scalar::FALSE_LAWS) {
        if let Some(text) = super::smt::obligation(rule) { std::fs::write(format!("/tmp/smt-v/{}.smt2", rule.head.number), text).unwrap(); }
    }
}
