// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A host whose TCP is smoltcp's, for tests of interoperation: it takes all frames of a device
//! to which the kernel gave no address, and does with one connection what its arguments say.
//!
//!     peer_smoltcp DEVICE ADDRESS serve|connect PEER PORT ACTION...
//!
//! The actions, and what is said on standard output, are those of talker.py. It goes on until
//! it is killed, because the last acknowledgement may have to be sent again.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::exit;
use std::time::{Duration, Instant as Clock};

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{wait, Medium, RawSocket};
use smoltcp::socket::tcp::{CongestionControl, RecvError, Socket, SocketBuffer, State};
use smoltcp::time::{Duration as Span, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};

const PERIOD: usize = 251;
const CHUNK: usize = PERIOD * 64;
const BUFFER: usize = 256 * 1024;

fn die(why: &str) -> ! {
    say(&format!("failed: {why}"));
    exit(1)
}

fn say(what: &str) {
    println!("{what}");
    let _ = std::io::stdout().flush();
}

struct Action {
    name: String,
    /// Bytes to send, or milliseconds.
    left: u64,
    /// Bytes to read.
    unread: u64,
    until: Option<Clock>,
}

/// The connection's bytes so far; what was written and read decides the value of the next.
struct Peer {
    pattern: Vec<u8>,
    wrote: u64,
    read: u64,
}

impl Peer {
    fn send_some(&mut self, socket: &mut Socket, left: &mut u64) {
        while *left > 0 && socket.can_send() {
            let at = (self.wrote % PERIOD as u64) as usize;
            let most = CHUNK.min(usize::try_from(*left).unwrap_or(CHUNK));
            match socket.send_slice(&self.pattern[at..at + most]) {
                Ok(sent) if sent > 0 => {
                    self.wrote += sent as u64;
                    *left -= sent as u64;
                }
                _ => return,
            }
        }
    }

    fn read_some(&mut self, socket: &mut Socket, left: &mut u64) {
        let mut bytes = [0; CHUNK];
        while *left > 0 && socket.can_recv() {
            let most = CHUNK.min(usize::try_from(*left).unwrap_or(CHUNK));
            let at = (self.read % PERIOD as u64) as usize;
            match socket.recv_slice(&mut bytes[..most]) {
                Ok(taken) if taken > 0 => {
                    if bytes[..taken] != self.pattern[at..at + taken] {
                        die(&format!("wrong bytes from {} on", self.read));
                    }
                    self.read += taken as u64;
                    *left -= taken as u64;
                }
                _ => return,
            }
        }
    }

    /// The action is done.
    fn act(&mut self, socket: &mut Socket, action: &mut Action) -> bool {
        match action.name.as_str() {
            "send" | "read" | "both" => {
                self.send_some(socket, &mut action.left);
                self.read_some(socket, &mut action.unread);
                if action.left > 0 && !socket.may_send() || action.unread > 0 && !socket.may_recv()
                {
                    die(&format!(
                        "{}: {} after {} bytes out and {} in",
                        action.name,
                        socket.state(),
                        self.wrote,
                        self.read
                    ));
                }
                action.left == 0 && action.unread == 0
            }
            "half" => {
                socket.close();
                true
            }
            "end" => {
                if socket.can_recv() {
                    die(&format!("more bytes than {}", self.read));
                }
                if is_reset(socket) {
                    die("a reset instead of an end");
                }
                !socket.may_recv()
            }
            "reset" => {
                socket.abort();
                true
            }
            "broken" | "flood" => {
                if action.name == "flood" {
                    self.send_some(socket, &mut u64::MAX.clone());
                } else {
                    self.read_some(socket, &mut u64::MAX.clone());
                }
                if !socket.may_recv() && !is_reset(socket) {
                    die("an end instead of a reset");
                }
                is_reset(socket)
            }
            "pause" => {
                let span = Duration::from_millis(action.left);
                let until = *action.until.get_or_insert_with(|| Clock::now() + span);
                Clock::now() >= until
            }
            other => die(&format!("no action: {other}")),
        }
    }
}

/// The peer ended the connection otherwise than by saying that nothing more comes.
fn is_reset(socket: &mut Socket) -> bool {
    socket.state() == State::Closed
        && !socket.can_recv()
        && matches!(socket.peek(1), Err(RecvError::InvalidState))
}

fn parse(words: &[String]) -> Vec<Action> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(name) = rest.next() {
        let mut number = 0;
        if ["send", "read", "both", "pause"].contains(&name.as_str()) {
            number = match rest.next().and_then(|word| word.parse().ok()) {
                Some(number) => number,
                None => die(&format!("{name} how much?")),
            };
        }
        found.push(Action {
            name: name.clone(),
            left: if name == "read" { 0 } else { number },
            unread: if name == "send" { 0 } else { number },
            until: None,
        });
    }
    found
}

fn hardware_address(device: &str) -> EthernetAddress {
    let path = format!("/sys/class/net/{device}/address");
    let mut bytes = [0; 6];
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            for (byte, word) in bytes.iter_mut().zip(text.trim().split(':')) {
                *byte = u8::from_str_radix(word, 16).unwrap_or(0);
            }
        }
        Err(why) => die(&format!("{path}: {why}")),
    }
    EthernetAddress(bytes)
}

fn interface(device: &str, own: IpAddress, wire: &mut RawSocket) -> Interface {
    let address = hardware_address(device);
    let mut config = Config::new(HardwareAddress::Ethernet(address));
    config.random_seed = u64::from(std::process::id()) << 20 ^ now().total_micros() as u64;
    let mut interface = Interface::new(config, wire, now());
    interface.update_ip_addrs(|all| {
        let prefix = if matches!(own, IpAddress::Ipv4(_)) {
            24
        } else {
            64
        };
        if all.push(IpCidr::new(own, prefix)).is_err() {
            die("no room for the address");
        }
    });
    interface
}

fn now() -> Instant {
    Instant::now()
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Reno);
    socket
}

fn begin(socket: &mut Socket, interface: &mut Interface, how: &str, peer: IpAddress, port: u16) {
    let told = if how == "serve" {
        socket.listen(port).map_err(|why| why.to_string())
    } else {
        let own = 49152 + (std::process::id() % 16384) as u16;
        socket
            .connect(interface.context(), (peer, port), own)
            .map_err(|why| why.to_string())
    };
    if let Err(why) = told {
        die(&format!("{how}: {why}"));
    }
    if how == "serve" {
        say("ready");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.len() < 6 {
        die("peer_smoltcp DEVICE ADDRESS serve|connect PEER PORT ACTION...");
    }
    let (device, how) = (&words[1], &words[3]);
    let (Ok(own), Ok(other), Ok(port)) = (words[2].parse(), words[4].parse(), words[5].parse())
    else {
        die("no addresses and port");
    };
    let mut actions = parse(&words[6..]);
    let mut wire = RawSocket::new(device, Medium::Ethernet)
        .unwrap_or_else(|why| die(&format!("{device}: {why}")));
    let mut interface = interface(device, own, &mut wire);
    let mut sockets = SocketSet::new(vec![]);
    let handle = sockets.add(socket());
    begin(sockets.get_mut(handle), &mut interface, how, other, port);

    let mut peer = Peer {
        pattern: (0..CHUNK + PERIOD).map(|i| (i % PERIOD) as u8).collect(),
        wrote: 0,
        read: 0,
    };
    let (mut open, mut done, mut at) = (false, false, 0);
    loop {
        interface.poll(now(), &mut wire, &mut sockets);
        let socket = sockets.get_mut::<Socket>(handle);
        if !open {
            match socket.state() {
                State::Listen | State::SynSent | State::SynReceived => {}
                State::Closed => die("the connection was refused"),
                _ => {
                    open = true;
                    say("open");
                }
            }
        }
        while open && at < actions.len() && peer.act(socket, &mut actions[at]) {
            at += 1;
            if at == actions.len() {
                socket.close();
            }
        }
        // It is smoltcp's until the peer has all.
        if at == actions.len() && !done && matches!(socket.state(), State::Closed | State::TimeWait)
        {
            say("done");
            done = true;
        }
        let most = Span::from_millis(1);
        let pause = interface
            .poll_delay(now(), &sockets)
            .unwrap_or(most)
            .min(most);
        if wait(wire.as_raw_fd(), Some(pause)).is_err() {
            die("the device cannot be waited for");
        }
    }
}
