//! The README's tour, run as it is written, in two terminals. Only the ports differ, and the program is the one
//! under test.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::program::{Place, Service, program, wait_until};

const IN_FIRST: &str = "cargo run --release";

/// The commands of the tour, block by block.
fn blocks() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, tour) = text.split_once("## A five-minute tour\n").expect("a tour");
    let (tour, _) = tour.split_once("\n## ").expect("a next section");
    let blocks = tour.split("```sh\n").skip(1).map(|block| block.split_once("```").expect("an end").0);
    blocks.map(str::to_owned).collect()
}

/// The terminal in which the service runs.
fn serve(place: &Place, block: &str) -> Service {
    let options =
        block.trim().strip_prefix(IN_FIRST).expect("the service").trim_start().trim_start_matches("-- ");
    let mut command = program(&["--listen", "127.0.0.1:0"]);
    command.args(options.split_whitespace()).current_dir(place.path());
    place.start(&mut command)
}

/// The terminal in which everything else runs: a shell that is typed into.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: Arc<Mutex<String>>,
    typed: usize,
}

impl Shell {
    fn start(directory: &Path) -> Self {
        let mut command = Command::new("sh");
        // The tour starts without any setting.
        for (name, _) in program(&[]).get_envs() {
            command.env_remove(name);
        }
        command.arg("-e").current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let output = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&output);
        thread::spawn(move || {
            let mut line = String::new();
            while stdout.read_line(&mut line).is_ok_and(|read| read > 0) {
                shown.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { child, input, output, typed: 0 }
    }

    fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Types commands and waits until all of them have succeeded.
    fn type_in(&mut self, commands: &str) {
        self.typed += 1;
        let done = format!("-- typed {}", self.typed);
        write!(self.input, "{commands}\necho '\n{done}'\n").unwrap();
        self.see(&done);
    }

    fn see(&mut self, text: &str) {
        wait_until(text, || {
            assert!(self.child.try_wait().unwrap().is_none(), "a command failed after:\n{}", self.output());
            self.output().contains(text)
        });
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The receiver runs in the background of the shell.
        let _ = self.input.write_all(b"kill $! || true\nexit\n");
        let _ = self.child.wait();
    }
}

#[test]
fn the_tour_ends_with_a_webhook_that_arrives() {
    let is_there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !is_there("curl") || !is_there("python3") {
        println!("not run: the tour needs curl and python3");
        return;
    }
    let place = Place::sqlite();
    let bin = place.path().join("target/release");
    fs::create_dir_all(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_rapport"), bin.join("rapport")).unwrap();
    let mut shell = Shell::start(place.path());
    let mut service: Option<Service> = None;
    let mut receiver = String::new();
    for block in blocks() {
        if block.starts_with(IN_FIRST) {
            if let Some(mut before) = service.take() {
                before.signal("INT");
                assert!(before.wait().success());
            }
            service = Some(serve(&place, &block));
            continue;
        }
        let address = &service.as_ref().expect("the service runs first").address;
        let commands = block.replace("localhost:8080", address).replace("127.0.0.1:9443", &receiver);
        shell.type_in(&commands.replace("rapport listen", "rapport listen --port 0"));
        if block.starts_with("rapport listen") {
            shell.see("Listening on https://");
            let output = shell.output();
            let (_, after) = output.rsplit_once("Listening on https://").unwrap();
            after.split('/').next().unwrap().clone_into(&mut receiver);
        }
    }
    shell.see("POST /hooks · account.status_changed");
    shell.see("\"status\": \"customer\"");
}
