//! Starts nginx and Caddy with the files of `docs/proxy/`. Only addresses and certificates are replaced.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use tempfile::TempDir;

use crate::caller::Caller;
use crate::program::wait_until;

/// Where the files in `docs/proxy/` expect the nodes.
const ONE: [&str; 1] = ["127.0.0.1:8080"];
const TWO: [&str; 2] = ["127.0.0.1:8081", "127.0.0.1:8082"];

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Nginx,
    Caddy,
}

/// A running proxy. Dropping it ends it.
pub struct Proxy {
    child: Child,
    pub address: String,
    directory: TempDir,
}

impl Kind {
    pub const BOTH: [Self; 2] = [Self::Nginx, Self::Caddy];

    /// A proxy in front of one node or two.
    pub fn start(self, nodes: &[&str]) -> Proxy {
        let (name, places) = match nodes {
            [_] => ("one", &ONE[..]),
            _ => ("nodes", &TWO[..]),
        };
        let address = free_address();
        let directory = TempDir::new().unwrap();
        let mut text = fs::read_to_string(documented(&format!("{name}.{}", self.suffix()))).unwrap();
        for (place, node) in places.iter().zip(nodes) {
            assert!(text.contains(place), "{text}");
            text = text.replace(place, node);
        }
        let mut command = match self {
            Self::Nginx => nginx(directory.path(), &text, &address),
            Self::Caddy => caddy(directory.path(), &text, &address),
        };
        let log = File::create(directory.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let child = child.unwrap_or_else(|error| panic!("starting {self:?}: {error}"));
        let mut proxy = Proxy { child, address, directory };
        wait_until("the proxy to answer", || proxy.answers());
        proxy
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Nginx => "nginx.conf",
            Self::Caddy => "Caddyfile",
        }
    }
}

impl Proxy {
    fn answers(&mut self) -> bool {
        if let Some(ended) = self.child.try_wait().unwrap() {
            let log = fs::read_to_string(self.directory.path().join("log")).unwrap();
            panic!("the proxy ended with {ended}:\n{log}");
        }
        let answer = Caller::new(Ipv4Addr::LOCALHOST, &self.address).send("GET", "/health/live", &[], "");
        answer.is_ok_and(|answer| answer.status == 200)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn documented(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/proxy").join(name)
}

/// In a single process, which needs no rights and leaves nothing behind.
fn nginx(directory: &Path, text: &str, address: &str) -> Command {
    let text: String =
        text.lines().filter(|line| !line.contains("ssl_certificate")).fold(String::new(), |text, line| {
            text + &line.replace("listen 443 ssl", &format!("listen {address}")) + "\n"
        });
    let shown = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {shown}/{name};\n"))
        .concat();
    let whole = format!(
        "daemon off;\nmaster_process off;\npid {shown}/pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}{text}}}\n"
    );
    let file = directory.join("nginx.conf");
    fs::write(&file, whole).unwrap();
    // Debian keeps it where only root's PATH looks.
    let installed = Path::new("/usr/sbin/nginx");
    let mut command = Command::new(if installed.exists() { installed } else { Path::new("nginx") });
    command.arg("-e").arg("stderr").arg("-c").arg(file);
    command
}

fn caddy(directory: &Path, text: &str, address: &str) -> Command {
    let text = text.replace("crm.example.com", &format!("http://:{}", port_of(address)));
    let file = directory.join("Caddyfile");
    let options = format!("{{\n\tadmin off\n\tdefault_bind {}\n}}\n", Ipv4Addr::LOCALHOST);
    fs::write(&file, format!("{options}{text}")).unwrap();
    let mut command = Command::new("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
    command.env("HOME", directory).env("XDG_DATA_HOME", directory).env("XDG_CONFIG_HOME", directory);
    command
}

fn port_of(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

/// An address that nobody uses and that the system gives to no connection, so it stays free while a node restarts.
pub fn free_address() -> String {
    const FIRST: u16 = 20_000;
    const PORTS: u16 = 10_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(PORTS)).unwrap();
    loop {
        let port = FIRST + start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let address = (Ipv4Addr::LOCALHOST, port);
        if TcpListener::bind(address).is_ok() {
            return format!("{}:{port}", address.0);
        }
    }
}
