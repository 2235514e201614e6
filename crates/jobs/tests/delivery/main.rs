//! Delivery as receivers see it: real TLS on loopback, both engines, a clock that tests move. Each line of
//! the interface document's "Delivery semantics" and of the decisions on delivery is a named test.

mod answers;
mod bulk;
mod disabling;
mod egress;
mod fairness;
mod fan_out;
mod guard;
mod harness;
mod hostile;
mod lost;
mod misbehaviour;
mod nodes;
mod own_headers;
mod redelivery;
mod requests;
mod schedule;
mod selection;
