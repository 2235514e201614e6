//! A command that nobody waits for. An interactive command is answered "busy" after a second; this one waits its
//! turn. On a busy machine the made-up company takes longer, but it is still created.

use rapport_app::command::{Command, Context};
use rapport_app::{Error, Needs};
use rapport_store::{Lane, Tx};

pub struct Unhurried<C>(pub C);

impl<C: Command> Command for Unhurried<C> {
    type Reply = C::Reply;
    const NEEDS: Needs = C::NEEDS;
    const LANE: Lane = Lane::Background;
    const EXCLUSIVE: bool = C::EXCLUSIVE;

    fn weight(&self) -> usize {
        self.0.weight()
    }

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<C::Reply, Error> {
        self.0.run(tx, cx)
    }
}
