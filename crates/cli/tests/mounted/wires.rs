//! Machines with a network of their own each, and wires between them that can be cut and slowed down.
//!
//! Each machine has a network namespace, and one more has the bridge that they hang on, so nothing of this computer's
//! own network is touched. The namespaces have no names. Each is held by a process that ends when this one does, in
//! whatever way, and the kernel then takes it away with all its wires.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::UdpSocket,
    os::fd::AsFd,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cell::{command_on, has, is_root, skip, text};

/// Networks for some machines, numbered from 0, and what they hang on.
pub struct Wires {
    /// None if they all have this computer's own.
    bridge: Option<Bridge>,
}

struct Bridge {
    place: Place,
    ends: Vec<Place>,
}

impl Wires {
    /// For so many machines. Where that is not permitted they share this computer's own addresses, which it says.
    pub fn new(count: usize) -> Wires {
        let bridge = Bridge::new(count)
            .map_err(|why| {
                eprintln!("no network for each machine ({why}): loopback addresses instead");
            })
            .ok();
        Wires { bridge }
    }

    /// For so many machines whose wires can be cut; nothing if that is not permitted, which it says.
    pub fn real(count: usize) -> Option<Wires> {
        match Bridge::new(count) {
            Ok(bridge) => Some(Wires { bridge: Some(bridge) }),
            Err(why) => {
                skip(&format!("no wire can be cut without a network for each machine: {why}"));
                None
            }
        }
    }

    /// The words that take a program to a machine's network.
    pub fn way(&self, machine: usize) -> Vec<String> {
        self.bridge.as_ref().map_or_else(Vec::new, |bridge| bridge.ends[machine].way())
    }

    /// Where others reach a machine, at first.
    pub fn address(&self, machine: usize) -> String {
        match self.bridge {
            Some(_) => address(machine),
            None => "127.0.0.1".into(),
        }
    }

    /// Nothing goes to a machine or comes from there any more, and nobody is told: as if a cable between two
    /// switches were cut.
    pub fn cut(&self, machine: usize) {
        self.bridge().place.ip(&format!("link set {} nomaster", port(machine))).unwrap();
    }

    /// The machine's own cable is pulled, which its kernel sees.
    pub fn pull(&self, machine: usize) {
        self.bridge().place.ip(&format!("link set {} down", port(machine))).unwrap();
    }

    /// All is as it was before.
    pub fn heal(&self, machine: usize) {
        let (bridge, port) = (self.bridge(), port(machine));
        bridge.place.ip(&format!("link set {port} master hub up")).unwrap();
        // There may be nothing to take away.
        _ = bridge.place.run(&["tc", "qdisc", "del", "dev", &port, "root"], "");
        _ = bridge.ends[machine].run(&["tc", "qdisc", "del", "dev", "eth", "root"], "");
    }

    /// Not more than so many kilobits go each way in a second.
    pub fn slow(&self, machine: usize, kilobits: u64) {
        let (bridge, rate) = (self.bridge(), format!("{kilobits}kbit"));
        let limit = |place: &Place, device: &str| {
            let words = ["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate"];
            let words = [&words[..], &[&rate, "burst", "10kb", "latency", "400ms"]].concat();
            place.run(&words, "").unwrap();
        };
        limit(&bridge.place, &port(machine));
        limit(&bridge.ends[machine], "eth");
    }

    /// A machine has another address from now on, and no longer the one that it had.
    pub fn readdress(&self, machine: usize, address: &str) {
        let lines = format!("address flush dev eth\naddress add {address}/24 dev eth");
        self.bridge().ends[machine].ip(&lines).unwrap();
    }

    /// A socket on a machine's network.
    pub fn socket(&self, machine: usize) -> UdpSocket {
        self.bridge().ends[machine].socket(&address(machine))
    }

    fn bridge(&self) -> &Bridge {
        self.bridge.as_ref().expect("only real wires can be changed")
    }
}

fn address(machine: usize) -> String {
    format!("10.77.0.{}", machine + 1)
}

/// The bridge's end of a machine's wire; the machine's own is `eth`.
fn port(machine: usize) -> String {
    format!("port{machine}")
}

impl Bridge {
    fn new(count: usize) -> Result<Bridge, String> {
        if !is_root() {
            return Err("it takes the superuser".into());
        }
        if let Some(program) =
            ["ip", "tc", "unshare", "nsenter"].into_iter().find(|program| !has(program))
        {
            return Err(format!("there is no {program} here; `cargo xtask test` installs it"));
        }
        let place = Place::new()?;
        place.ip("link add hub type bridge\nlink set hub up")?;
        let mut ends = Vec::new();
        for machine in 0..count {
            let (end, port) = (Place::new()?, port(machine));
            let pid = end.holder.id();
            place.ip(&format!(
                "link add {port} type veth peer name eth netns {pid}\nlink set {port} master hub up"
            ))?;
            let address = address(machine);
            end.ip(&format!(
                "address add {address}/24 dev eth\nlink set eth up\nroute add 224.0.0.0/4 dev eth"
            ))?;
            ends.push(end);
        }
        Ok(Bridge { place, ends })
    }
}

/// A network namespace, there for as long as this is.
struct Place {
    /// Waits for the end of its standard input, and has the namespace meanwhile.
    holder: Child,
}

impl Place {
    fn new() -> Result<Place, String> {
        let holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "ip link set lo up && echo there && exec cat >&2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut place = Place { holder };
        let mut line = String::new();
        let stdout = place.holder.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        if line == "there\n" {
            return Ok(place);
        }
        let mut why = String::new();
        let stderr = place.holder.stderr.take();
        _ = stderr.map(|mut stderr| stderr.read_to_string(&mut why));
        Err(format!("no network namespace can be made: {}", why.trim()))
    }

    fn way(&self) -> Vec<String> {
        vec!["nsenter".into(), format!("--net=/proc/{}/ns/net", self.holder.id())]
    }

    /// What `ip` is to do there, line by line.
    fn ip(&self, lines: &str) -> Result<(), String> {
        self.run(&["ip", "-batch", "-"], lines)
    }

    /// A socket there.
    fn socket(&self, address: &str) -> UdpSocket {
        let namespace = File::open(format!("/proc/{}/ns/net", self.holder.id())).unwrap();
        // A thread that goes there does not come back.
        let bind = || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            UdpSocket::bind((address, 0)).unwrap()
        };
        thread::scope(|scope| scope.spawn(bind).join().unwrap())
    }

    fn run(&self, words: &[&str], input: &str) -> Result<(), String> {
        let (program, words) = words.split_first().expect("a program");
        let mut child = command_on(&self.way(), program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let stdin = child.stdin.take();
        _ = stdin.map(|mut stdin| stdin.write_all(format!("{input}\n").as_bytes()));
        let output = child.wait_with_output().map_err(|error| format!("{program}: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{program} {input}: {}", text(&output.stderr).trim())),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn a_cut_wire_carries_nothing_a_healed_one_everything_and_none_outlives_its_test() {
    let Some(wires) = Wires::real(2) else { return };
    let [from, to] = [0, 1].map(|machine| wires.socket(machine));
    let brief = Some(Duration::from_millis(100));
    to.set_read_timeout(brief).unwrap();
    // A neighbour is sought first, so the first words may be lost, or come late.
    let mut said = 0u64;
    let mut passes = |tries| {
        (0..tries).any(|_| {
            said += 1;
            _ = from.send_to(&said.to_le_bytes(), to.local_addr().unwrap());
            let mut heard = [0; 8];
            while to.recv(&mut heard).is_ok() {
                if heard == said.to_le_bytes() {
                    return true;
                }
            }
            false
        })
    };
    assert!(passes(50));
    wires.cut(1);
    assert!(!passes(3));
    wires.heal(1);
    assert!(passes(50));
    wires.pull(1);
    assert!(!passes(3));
    wires.heal(1);
    assert!(passes(50));
    wires.slow(1, 64);
    for _ in 0..100 {
        from.send_to(&[0; 1_000], to.local_addr().unwrap()).unwrap();
    }
    let came = (0..100).take_while(|_| to.recv(&mut [0; 1_000]).is_ok()).count();
    assert!(came < 100, "what is too much for a slow wire is lost");

    let holder = wires.bridge().place.holder.id();
    drop(wires);
    assert!(!std::path::Path::new(&format!("/proc/{holder}")).exists());
}
