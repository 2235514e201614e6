//! Faults under load, on the real program: it is killed, the power is cut, the database restarts, refuses and vanishes.
//! After each run nothing acknowledged is lost, what belongs together is there together, and no delivery is left open.
//!
//! These are short runs. `./scripts/faults` makes the same runs long ones, by the variables in `size.rs`.

#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod program;

mod check;
mod database;
mod disk;
mod kills;
mod load;
mod migrate;
mod nodes;
mod power_cut;
mod report;
mod scene;
mod size;
mod under_load;
