//! A command that nobody waits for: where an interactive one is answered "busy" after a second, it waits for its turn.
//! On a busy machine the made-up company takes longer and still comes to life.

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
