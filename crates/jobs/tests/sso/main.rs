//! Single sign-on with a real provider on loopback: the protocol, and a provider that breaks it in every way that matters.
//! Each login goes from our first redirect to the session, on both engines.

mod harness;
mod misbehaviour;
mod network;
mod protocol;
