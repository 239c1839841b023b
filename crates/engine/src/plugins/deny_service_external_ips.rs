//! `DenyServiceExternalIPs`: no service takes the traffic for an address of others (CVE-2020-8554).

use core::net::IpAddr;
use std::collections::HashSet;

use admission::Text;
use admission::review::null_as_default;
use serde::Deserialize;

use super::forbidden;
use crate::pod::limits::at_most_or_none;

/// External IPs that are read: each takes 9 bytes of what can be stored.
const ADDRESSES: usize = 170_000;

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DenyServiceExternalIps {
    /// Ranges whose addresses are allowed.
    pub allowed: AddressRanges,
}

/// Ranges of addresses, sorted, of which no two touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRanges {
    v4: Vec<(u128, u128)>,
    v6: Vec<(u128, u128)>,
}

impl AddressRanges {
    /// All of these.
    pub fn of(ranges: impl IntoIterator<Item = Cidr>) -> Self {
        let mut all = Self::default();
        for range in ranges {
            let list = if range.address.is_ipv4() { &mut all.v4 } else { &mut all.v6 };
            list.push(range.bounds());
        }
        Self { v4: joined(all.v4), v6: joined(all.v6) }
    }

    fn contains(&self, address: IpAddr) -> bool {
        let (list, number) = match address {
            IpAddr::V4(address) => (&self.v4, u128::from(address.to_bits())),
            IpAddr::V6(address) => (&self.v6, address.to_bits()),
        };
        let after = list.partition_point(|(first, _)| {
            super::work::done(1);
            *first <= number
        });
        after.checked_sub(1).and_then(|at| list.get(at)).is_some_and(|(_, last)| number <= *last)
    }
}

/// The same addresses, in as few ranges as possible.
fn joined(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u128, u128)> = Vec::new();
    for (first, last) in ranges {
        match joined.last_mut().filter(|(_, end)| first <= end.saturating_add(1)) {
            Some((_, end)) => *end = last.max(*end),
            None => joined.push((first, last)),
        }
    }
    joined
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Reads `address/bits`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u8 = bits.parse().ok().filter(|bits| is_number && *bits <= most)?;
        Some(Self { address, bits })
    }

    /// The first and the last address, as numbers.
    fn bounds(self) -> (u128, u128) {
        let (number, width) = match self.address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32_u32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let rest = width.saturating_sub(u32::from(self.bits));
        let below = u128::MAX.checked_shr(128 - rest).unwrap_or_default();
        (number & !below, number | below)
    }
}

/// What is read of a service, borrowed from the body.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct ServiceFacts<'a> {
    /// By which a refusal names the service.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Named<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    spec: ServiceSpec<'a>,
}

/// Metadata of a service.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Named<'a> {
    /// Empty where the API server has yet to make one up.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The beginning of a name that the API server makes up.
    #[serde(borrow)]
    pub generate_name: Text<'a>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct ServiceSpec<'a> {
    #[serde(borrow, rename = "externalIPs", deserialize_with = "at_most_or_none::<_, _, ADDRESSES>")]
    external_ips: Vec<Text<'a>>,
}

admission::only_objects!(ServiceFacts<'a>, Named<'a>, ServiceSpec<'a>);

impl DenyServiceExternalIps {
    /// Judges a service that is new, or changed: what it had it may keep.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check(&self, new: &ServiceFacts<'_>, old: Option<&ServiceFacts<'_>>, name: &str) -> Result<(), String> {
        let had: HashSet<&str> = old.into_iter().flat_map(|old| &old.spec.external_ips).map(Text::as_str).collect();
        let added = new.spec.external_ips.iter().filter(|one| !had.contains(one.as_str()));
        let is_cut = new.spec.external_ips.len() > ADDRESSES;
        if is_cut || added.into_iter().any(|one| !self.allows(one)) {
            return Err(forbidden("services", name, "Use of external IPs is denied by admission control"));
        }
        Ok(())
    }

    fn allows(&self, text: &str) -> bool {
        text.parse().is_ok_and(|address| self.allowed.contains(address))
    }
}
