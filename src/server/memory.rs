//! How much memory the container may use.

use std::fs;

/// The limit of the control group in bytes, as a container sees it: version 2, then version 1.
const FILES: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// The limit in bytes; none outside containers, and where there is no limit.
pub fn limit() -> Option<usize> {
    FILES.iter().find_map(|file| read(&fs::read_to_string(file).ok()?))
}

/// Version 2 says `max` where there is no limit, version 1 a number that no machine has.
fn read(text: &str) -> Option<usize> {
    const NO_MACHINE: usize = 1 << 50;
    text.trim().parse().ok().filter(|limit| *limit < NO_MACHINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_that_a_machine_can_have() {
        let table = [("268435456\n", Some(256 << 20)), ("max\n", None), ("9223372036854771712\n", None), ("", None)];
        for (text, limit) in table {
            assert_eq!(read(text), limit, "{text:?}");
        }
    }
}
