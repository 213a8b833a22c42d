//! The Vulkan device of this machine.

use ds4_golden::devices;
use ds4_ir::diagnostic::codes;

/// Whether there is a Vulkan device; CI has one.
pub fn vulkan(test: &str) -> bool {
    let found = devices::open("wgpu");
    if let Err(diagnostic) = &found {
        let absent = [codes::DEVICE_DRIVER, codes::DEVICE_ABSENT].contains(&diagnostic.code);
        assert!(absent, "{test}: {diagnostic}");
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{test}: {diagnostic}");
        println!("skipped: {test} needs a Vulkan device, which scripts/tools installs: {diagnostic}");
    }
    found.is_ok()
}
