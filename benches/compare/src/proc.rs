//! What the kernel says about a process: proc(5).

use std::fs;
use std::path::PathBuf;

use crate::error::BenchError;

/// A clock tick of `utime` and `stime` in microseconds. `USER_HZ` is 100 on every architecture that Rust's standard
/// library and Kubernetes share (Linux, include/asm-generic/param.h), whatever the kernel's own HZ.
const TICK_MICROSECONDS: u64 = 10_000;

/// CPU time of all threads of a process since its start, user and system, in microseconds.
///
/// # Errors
/// A process that is gone.
pub fn cpu_microseconds(pid: u32) -> Result<u64, BenchError> {
    let (path, text) = read(pid, "stat")?;
    ticks(&text).map(|ticks| ticks * TICK_MICROSECONDS).ok_or(BenchError::Proc {
        path,
        field: "utime and stime",
        found: text,
    })
}

/// Resident memory of a process in KiB.
///
/// # Errors
/// A process that is gone.
pub fn resident_kib(pid: u32) -> Result<u64, BenchError> {
    let (path, text) = read(pid, "status")?;
    resident(&text).ok_or(BenchError::Proc { path, field: "VmRSS", found: text })
}

fn read(pid: u32, file: &str) -> Result<(PathBuf, String), BenchError> {
    let path = PathBuf::from(format!("/proc/{pid}/{file}"));
    let text = fs::read_to_string(&path).map_err(BenchError::file(&path))?;
    Ok((path, text))
}

/// Fields 14 and 15. The command in field 2 may hold spaces and parentheses, so count from its last parenthesis.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_command) = stat.rsplit_once(") ")?;
    let mut fields = after_command.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn resident(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn utime_and_stime_are_found_behind_any_command_name() {
        let numbers = "S 1 2 3 4 -1 6 7 8 9 10 150 25 0 0 20 0 4 0";
        for command in ["outrider", "a b", "x) y (z"] {
            assert_eq!(ticks(&format!("42 ({command}) {numbers}")), Some(175), "{command}");
        }
        assert_eq!(ticks("42 (cut) S 1"), None);
    }

    #[test]
    fn the_figures_of_a_living_process_can_be_read() {
        let pid = std::process::id();
        assert!(resident_kib(pid).unwrap() > 0);
        let before = cpu_microseconds(pid).unwrap();
        let mut sum = 0_u64;
        while cpu_microseconds(pid).unwrap() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(cpu_microseconds(pid).unwrap() > before);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error_with_its_path() {
        let text = cpu_microseconds(u32::MAX).unwrap_err().to_string();
        assert!(text.contains("/proc/4294967295/stat"), "{text}");
    }
}
