//! Whether the libraries of the drivers are there. They are loaded when they are needed and at no other time, so that
//! one binary starts anywhere; and they stay loaded, since some do not survive to be loaded a second time.

use libloading::Library;

/// An interface to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// Vulkan's loader.
    Vulkan,
    /// The driver API of CUDA.
    Cuda,
    /// The runtime of HIP.
    Hip,
}

impl Driver {
    /// File names of the library, the preferred one first.
    pub fn libraries(self) -> &'static [&'static str] {
        match self {
            Driver::Vulkan if cfg!(windows) => &["vulkan-1.dll"],
            Driver::Vulkan => &["libvulkan.so.1", "libvulkan.so"],
            Driver::Cuda if cfg!(windows) => &["nvcuda.dll"],
            Driver::Cuda => &["libcuda.so.1"],
            Driver::Hip if cfg!(windows) => &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"],
            Driver::Hip => &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"],
        }
    }

    /// What brings the library.
    pub fn package(self) -> &'static str {
        match self {
            Driver::Vulkan => "the Vulkan loader (Debian: libvulkan1) and the driver of the device",
            Driver::Cuda => "NVIDIA's driver",
            Driver::Hip => "AMD's ROCm (Debian: libamdhip64-5)",
        }
    }

    /// The library's name if it can be loaded, else the reason of the system.
    pub fn find(self) -> Result<&'static str, String> {
        let mut reason = String::new();
        for name in self.libraries() {
            // SAFETY: loading runs the initialisers of a driver that the system's owner installed; nothing is called in
            // it here.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    std::mem::forget(library);
                    return Ok(name);
                }
                Err(error) if reason.is_empty() => reason = first_line(&error),
                Err(_) => {}
            }
        }
        Err(reason)
    }
}

fn first_line(error: &libloading::Error) -> String {
    let text = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    text.lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        for driver in [Driver::Vulkan, Driver::Cuda, Driver::Hip] {
            match driver.find() {
                Ok(name) => assert!(driver.libraries().contains(&name)),
                Err(reason) => assert!(!reason.is_empty(), "{driver:?}"),
            }
        }
    }
}
