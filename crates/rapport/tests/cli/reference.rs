//! `rapport completions` and `rapport man`: what they write, and that they need no configuration.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::program::{program, run};

const HIDDEN: [&str; 2] = ["completions", "rapport-man"];

#[test]
fn each_shell_gets_a_script_that_leaves_out_hidden_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        // Shells run this at login, wherever that is: settings are not its business.
        let ended = run(program(&["completions", shell]).env("RAPPORT_LISTEN", "invalid"));
        assert_eq!(ended.code, Some(0), "{shell}: {}", ended.stderr);
        for word in ["doctor", "company", "data-dir"] {
            assert!(ended.stdout.contains(word), "{shell}: {word} is missing");
        }
        // The scripts of two shells have a variable of the same name.
        let hidden =
            if ["elvish", "powershell"].contains(&shell) { "rapport;completions" } else { "completions" };
        assert!(!ended.stdout.contains(hidden), "{shell} completes a hidden command");
    }
    let unknown = run(&mut program(&["completions", "dos"]));
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("SHELL"), "{}", unknown.stderr);
}

#[test]
fn bash_completes_commands_and_settings() {
    let directory = TempDir::new().unwrap();
    let script = directory.path().join("rapport.bash");
    fs::write(&script, run(&mut program(&["completions", "bash"])).stdout).unwrap();
    for (typed, completed) in
        [("doc", "doctor"), ("company cr", "create"), ("--allow-d", "--allow-destination"), ("compl", "")]
    {
        let complete = format!(
            ". '{}'; COMP_WORDS=(rapport {typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _rapport rapport \"${{COMP_WORDS[COMP_CWORD]}}\" x; echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let ended = run(Command::new("bash").args(["--norc", "-c", &complete]));
        assert_eq!(ended.stdout.trim(), completed, "{typed}: {}", ended.stderr);
    }
}

#[test]
fn there_is_a_man_page_for_the_program_and_for_each_command() {
    let directory = TempDir::new().unwrap();
    let pages = directory.path().join("man/man1");
    let ended = run(program(&["man", pages.to_str().unwrap()]).env("RAPPORT_LISTEN", "invalid"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let page = |name: &str| fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
    let program = page("rapport");
    for part in ["RAPPORT_ALLOW_DESTINATION", "rapport.toml", "EXIT STATUS", "rapport\\-doctor(1)"] {
        assert!(program.contains(part), "{part} is missing in:\n{program}");
    }
    let create = page("rapport-company-create");
    for part in ["owner\\-name", "rapport company create", "SEE ALSO"] {
        assert!(create.contains(part), "{part} is missing in:\n{create}");
    }
    assert!(!create.contains("RAPPORT_"), "settings are described once, in rapport(1):\n{create}");
    for written in fs::read_dir(&pages).unwrap() {
        let name = written.unwrap().file_name().into_string().unwrap();
        assert!(!HIDDEN.iter().any(|hidden| name.contains(hidden)), "{name} describes a hidden command");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let ended = run(&mut program(&["man", "/dev/null/man"]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("/dev/null/man"), "{}", ended.stderr);
}
