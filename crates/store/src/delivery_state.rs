//! The numbers that the states of deliveries are stored as. Statements name a state with `delivery_state!`; only
//! the partial indexes in the migrations repeat the numbers, because a migration never changes.

use rapport_domain::delivery::State;
use rapport_domain::time::Time;

/// A state's number, as a literal for the text of a statement.
macro_rules! delivery_state {
    (open) => {
        0
    };
    (succeeded) => {
        1
    };
    (failed) => {
        2
    };
}
pub(crate) use delivery_state;

pub(crate) const OPEN: i64 = delivery_state!(open);
pub(crate) const SUCCEEDED: i64 = delivery_state!(succeeded);
pub(crate) const FAILED: i64 = delivery_state!(failed);

pub(crate) const fn encode(state: State) -> i64 {
    match state {
        State::Open { .. } => OPEN,
        State::Succeeded => SUCCEEDED,
        State::Failed => FAILED,
    }
}

/// The stored state. Only an open delivery has a next attempt.
pub(crate) const fn decode(number: i64, next_at: Time) -> State {
    match number {
        OPEN => State::Open { next_at },
        SUCCEEDED => State::Succeeded,
        _ => State::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_000_000);

    #[test]
    fn statements_name_the_numbers_that_are_written() {
        for (state, number, literal) in [
            (State::Open { next_at: NOW }, OPEN, concat!(delivery_state!(open))),
            (State::Succeeded, SUCCEEDED, concat!(delivery_state!(succeeded))),
            (State::Failed, FAILED, concat!(delivery_state!(failed))),
        ] {
            assert_eq!((encode(state), number.to_string().as_str()), (number, literal), "{state:?}");
            assert_eq!(decode(number, NOW), state);
        }
    }

    /// The partial indexes of deliveries repeat the numbers, and are used only if the statements agree with them.
    #[test]
    fn the_stored_numbers_never_change() {
        assert_eq!((OPEN, SUCCEEDED, FAILED), (0, 1, 2));
    }
}
