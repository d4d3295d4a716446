//! One binary of integration tests, a module a subject.

mod model;
mod corruption;
mod crash;
mod random;
mod storage;
mod store;
mod support;
