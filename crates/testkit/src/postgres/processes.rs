//! The processes of servers: who they are, and who ends them when the tests are gone.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Reads the ids of servers to stop, line by line; at the end of the pipe it stops the last one and cleans up.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
process=
while read -r line; do process=$line; done
if [ -n "$process" ]; then
    kill -QUIT "$process" 2>/dev/null
    tries=0
    while grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$process/status" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -eq 200 ] && kill -KILL "$process"
        [ "$tries" -gt 250 ] && break
        sleep 0.05
    done
fi
# initdb may still be writing when the process died that early.
for _ in 1 2 3 4 5; do
    rm -rf "$1" 2>/dev/null
    [ -e "$1" ] || break
    sleep 1
done
"#;

pub fn start_watchdog(directory: &Path) -> Child {
    Command::new("sh")
        .args(["-c", WATCHDOG, "rapport-postgres-watchdog"])
        .arg(directory)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Its own group, so that Ctrl-C in the terminal ends the tests but not the cleanup after them.
        .process_group(0)
        .spawn()
        .expect("running sh")
}

pub fn signal(name: &str, processes: &[u32]) {
    // The shell's own `kill`, because a small machine has no other. It is fine if a process has just ended.
    let _ = Command::new("sh")
        .args(["-c", r#"name=$1; shift; for process; do kill -s "$name" "$process"; done"#, "kill", name])
        .args(processes.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status()
        .expect("running sh");
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("the processes of this machine").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&process| state_and_parent(process).is_some_and(|(_, its_parent)| its_parent == parent))
        .collect()
}

/// A zombie has ended: if nothing reaps orphans, it stays in the list forever.
pub fn is_running(process: u32) -> bool {
    state_and_parent(process).is_some_and(|(state, _)| !matches!(state.as_str(), "Z" | "X"))
}

fn state_and_parent(process: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it is in parentheses and may hold anything, parentheses included.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
