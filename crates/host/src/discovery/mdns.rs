//! Multicast DNS (RFC 6762, RFC 6763): needs no server, and no network but the local one.
//!
//! A machine is an instance of `_croft._udp.local.`, named by the beginning of its key. Its text has `key`, all 64
//! digits of that, and `cell`, the cell in short.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use base::{Digest, PublicKey};
use mdns_sd::{IfKind, Receiver, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};

use crate::Key;

use super::{ADDRESSES_MAX, Cell, Medium, Notice};

const SERVICE: &str = "_croft._udp.local.";
/// A label has at most 63 letters.
const NAME_DIGITS: usize = 32;
/// The most records that are remembered of others, about. The library has no bound of its own.
const RECORDS_MAX: i64 = 8_192;
/// Before it is begun anew after it failed, or had too much to remember.
const BEGIN_PAUSE: Duration = Duration::from_secs(10);
/// How long to wait for what the library says of itself.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// The most finds that are looked at in one go.
const FINDS_MAX: usize = 256;

/// Multicast DNS on the network of one address.
pub(crate) struct Mdns {
    at: IpAddr,
    /// What is said of this machine, if anything is.
    notice: Option<Notice>,
    /// None if it failed, or there were too many records; then it is begun anew.
    daemon: Option<ServiceDaemon>,
    finds: Option<Receiver<ServiceEvent>>,
    looks: bool,
    begun: Instant,
}

impl Mdns {
    /// On the network of an address of this machine. Others are told of this one, if there is something to tell.
    pub(crate) fn new(at: IpAddr, notice: Option<Notice>) -> Mdns {
        let mut mdns =
            Mdns { at, notice, daemon: None, finds: None, looks: false, begun: Instant::now() };
        mdns.begin();
        mdns
    }

    /// What can't be begun now is tried again, later.
    fn begin(&mut self) {
        self.begun = Instant::now();
        let begun = begin(self.at, self.notice.as_ref());
        self.finds = match &begun {
            Ok(daemon) if self.looks => daemon.browse(SERVICE).ok(),
            _ => None,
        };
        self.daemon = begun.ok();
    }

    /// So many records of others are remembered, about; none if it can't say.
    fn records(&self) -> Option<i64> {
        let metrics = self.daemon.as_ref()?.get_metrics().ok()?.recv_timeout(ANSWER_MAX).ok()?;
        Some(metrics.iter().filter(|(name, _)| name.starts_with("cached")).map(|(_, n)| n).sum())
    }

    fn end(&mut self) {
        self.finds = None;
        _ = self.daemon.take().map(|daemon| daemon.shutdown());
    }
}

impl Medium for Mdns {
    fn look(&mut self, looks: bool) {
        // Also how it is known that its thread has not ended.
        if self.records().is_none_or(|records| records > RECORDS_MAX) {
            self.end();
            self.looks = looks;
            if self.begun.elapsed() >= BEGIN_PAUSE {
                self.begin();
            }
            return;
        }
        if looks == self.looks {
            return;
        }
        self.looks = looks;
        let Some(daemon) = &self.daemon else { return };
        match looks {
            true => self.finds = daemon.browse(SERVICE).ok(),
            false => {
                _ = daemon.stop_browse(SERVICE);
                self.finds = None;
            }
        }
    }

    fn found(&mut self) -> Vec<Notice> {
        let finds = self.finds.iter().flat_map(|finds| finds.try_iter().take(FINDS_MAX));
        let resolved = finds.filter_map(|find| match find {
            ServiceEvent::ServiceResolved(service) => read(&service),
            _ => None,
        });
        resolved.collect()
    }
}

impl Drop for Mdns {
    fn drop(&mut self) {
        self.end();
    }
}

fn begin(at: IpAddr, notice: Option<&Notice>) -> Result<ServiceDaemon, mdns_sd::Error> {
    let daemon = ServiceDaemon::new()?;
    // Nobody elsewhere is told, or heard.
    daemon.disable_interface(IfKind::All)?;
    daemon.enable_interface(IfKind::Addr(at))?;
    if let Some(notice) = notice {
        daemon.register(describe(notice)?)?;
    }
    Ok(daemon)
}

fn describe(Notice { cell, key, addresses }: &Notice) -> Result<ServiceInfo, mdns_sd::Error> {
    let digits = Key(*key).to_string();
    let name = &digits[..NAME_DIGITS];
    let cell = hexadecimal(cell);
    let text = [("key", digits.as_str()), ("cell", cell.as_str())];
    let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    let port = addresses.first().map_or(0, SocketAddr::port);
    ServiceInfo::new(SERVICE, name, &format!("{name}.local."), &ips[..], port, &text[..])
}

/// What an answer says, if it makes sense.
fn read(service: &ResolvedService) -> Option<Notice> {
    let word = |name| service.get_property_val_str(name);
    let key: Digest = word("key")?.parse().ok()?;
    let cell = word("cell")?;
    let mut ips: Vec<IpAddr> = service.get_addresses().iter().map(|ip| ip.to_ip_addr()).collect();
    ips.sort_unstable();
    let addresses = ips.into_iter().filter(|ip| !ip.is_unspecified() && !ip.is_multicast());
    let addresses = addresses.map(|ip| SocketAddr::new(ip, service.get_port()));
    Some(Notice {
        cell: read_cell(cell)?,
        key: PublicKey::from_bytes(*key.as_bytes()),
        addresses: addresses.filter(|at| at.port() != 0).take(ADDRESSES_MAX).collect(),
    })
}

fn hexadecimal(Cell(bytes): &Cell) -> String {
    format!("{:016x}", u64::from_be_bytes(*bytes))
}

fn read_cell(digits: &str) -> Option<Cell> {
    let is_plain = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
    Some(Cell(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> Notice {
        let key = PublicKey::from_bytes([0xab; 32]);
        let addresses = vec![SocketAddr::from(([10, 0, 0, 1], 7_001))];
        Notice { cell: Cell::of(&key), key, addresses }
    }

    #[test]
    fn what_is_said_is_what_is_read() {
        let service = describe(&notice()).unwrap().as_resolved_service();
        assert_eq!(read(&service), Some(notice()));
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        let check = |change: &dyn Fn(&mut ResolvedService)| {
            let mut service = describe(&notice()).unwrap().as_resolved_service();
            change(&mut service);
            read(&service)
        };
        let say = |words: &[(&str, &str)]| {
            let info = ServiceInfo::new(SERVICE, "x", "x.local.", "10.0.0.1", 7, words).unwrap();
            read(&info.as_resolved_service())
        };
        let key = "ab".repeat(32);
        assert!(say(&[("key", &key), ("cell", "00112233aabbccdd")]).is_some());
        for (key, cell) in [("ab", "00112233aabbccdd"), (&key, "+0112233aabbccdd"), (&key, "é")] {
            assert_eq!(say(&[("key", key), ("cell", cell)]), None);
        }
        assert_eq!(say(&[]), None);
        assert_eq!(check(&|service| service.port = 0).unwrap().addresses, []);
        assert_eq!(check(&|service| service.addresses.clear()).unwrap().addresses, []);
    }
}
