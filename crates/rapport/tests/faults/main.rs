//! Faults under load, on the real program: it is killed, the power is cut, the database restarts, refuses and vanishes.
//! After each run nothing acknowledged is lost, nothing is half-applied, and no delivery is left open.
//!
//! These are short runs. `./scripts/faults` makes them long, with the variables in `size.rs`.

#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the command-line tests use the rest")]
mod program;

mod backups;
mod check;
mod client;
mod consumers;
mod database;
mod disk;
mod follow;
mod kills;
mod load;
mod migrate;
mod mixed;
mod nodes;
mod power_cut;
mod repeats;
mod report;
mod scene;
mod size;
mod under_load;
