//! The server as its clients see it: bytes over connections on loopback.

mod answers;
mod client;
mod rules;
