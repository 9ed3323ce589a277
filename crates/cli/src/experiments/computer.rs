//! What an experiment ran on, and what it has had of its processors.

use std::fs;

use rustix::{
    system::uname,
    time::{ClockId, clock_gettime},
};

/// Processors, memory and kernel, as far as Linux tells.
pub fn describe() -> String {
    let field = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
    };
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "processors".into());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| {
        let kib = text.split_whitespace().next()?.parse::<f64>().ok()?;
        Some(format!(", {:.0} GiB", kib / 1024.0 / 1024.0))
    });
    let kernel = uname();
    let words = [kernel.sysname(), kernel.release(), kernel.machine()];
    let kernel = words.map(|word| word.to_string_lossy().into_owned()).join(" ");
    format!("{count} × {model}{}, {kernel}", memory.unwrap_or_default())
}

/// What this process has had of processors, in seconds.
pub fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
