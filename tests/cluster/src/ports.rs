//! Ports for processes that need to know before they start where to listen.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below those that a kernel gives to connections (from 32768 on Linux, ip(7)): such a port may be taken by anybody's connection
/// before the process listens. Above those of the components of Kubernetes.
const PORTS: Range<u32> = 12_000..30_000;

static GIVEN: AtomicU32 = AtomicU32::new(0);

/// A port of 127.0.0.1 without a listener, that no other call gave. Processes that ask at the same time begin at different
/// ports.
///
/// # Errors
/// When every one is taken.
pub fn free_port() -> io::Result<u16> {
    let count = PORTS.end - PORTS.start;
    let first = process::id().wrapping_mul(97);
    let next = || PORTS.start + first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % count;
    first_free(PORTS.filter_map(|_| next().try_into().ok())).ok_or_else(|| ErrorKind::AddrInUse.into())
}

fn first_free(mut ports: impl Iterator<Item = u16>) -> Option<u16> {
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice_or_while_somebody_listens() {
        let given: BTreeSet<u16> = (0..40).map(|_| free_port().unwrap()).collect();
        assert_eq!(given.len(), 40);
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = held.local_addr().unwrap().port();
        let free = free_port().unwrap();
        assert_eq!(first_free([taken, free].into_iter()), Some(free));
        assert_eq!(first_free([taken].into_iter()), None);
    }
}
