//! Addresses to listen on, as Kubernetes components write them: `:9443`, `127.0.0.1:0`, `[::1]:8080`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAddress {
    /// Nowhere: the front is off.
    Off,
    /// On all interfaces, both families.
    AllInterfaces(u16),
    /// On one address.
    One(SocketAddr),
}

impl BindAddress {
    /// The port, unless the front is off.
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Off => None,
            Self::AllInterfaces(port) => Some(*port),
            Self::One(address) => Some(address.port()),
        }
    }
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address; {HOW_TO_WRITE}")]
pub struct NotAnAddress(String);

/// How an address is written, for messages.
pub const HOW_TO_WRITE: &str = "write :PORT for all interfaces, IP:PORT for one, or 0 for none";

impl FromStr for BindAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unreadable = || NotAnAddress(text.to_owned());
        if text == "0" {
            return Ok(Self::Off);
        }
        match text.rsplit_once(':') {
            Some(("", port)) => port.parse().map(Self::AllInterfaces).map_err(|_| unreadable()),
            Some(("localhost", port)) => {
                let port = port.parse().map_err(|_| unreadable())?;
                Ok(Self::One((Ipv4Addr::LOCALHOST, port).into()))
            }
            _ => text.parse().map(Self::One).map_err(|_| unreadable()),
        }
    }
}

impl BindAddress {
    /// Opens the port; nothing when the front is off.
    ///
    /// # Errors
    /// What the system says, such as that the port is taken.
    pub async fn listen(&self) -> io::Result<Option<TcpListener>> {
        match *self {
            Self::Off => Ok(None),
            Self::One(address) => TcpListener::bind(address).await.map(Some),
            Self::AllInterfaces(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
                // A kernel without IPv6 refuses the family, not the port.
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.map(Some)
                }
                bound => bound.map(Some),
            },
        }
    }
}

impl std::fmt::Display for BindAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::AllInterfaces(port) => write!(f, ":{port}"),
            Self::One(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_kubernetes_components_write_them() {
        let table = [
            (":9443", Some(BindAddress::AllInterfaces(9443))),
            ("0", Some(BindAddress::Off)),
            ("127.0.0.1:0", Some(BindAddress::One(([127, 0, 0, 1], 0).into()))),
            ("localhost:81", Some(BindAddress::One(([127, 0, 0, 1], 81).into()))),
            ("[::1]:80", Some(BindAddress::One((Ipv6Addr::LOCALHOST, 80).into()))),
            ("9443", None),
            (":https", None),
            (":70000", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<BindAddress>().ok(), expected, "{text:?}");
        }
    }
}
