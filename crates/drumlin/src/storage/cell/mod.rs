//! The roots of shared logs on servers (*rows.rs*), and the servers.

mod bucket;
mod etcd;
mod postgres;
mod rows;
mod server;
mod wait;

pub use bucket::BucketCell;
pub use etcd::EtcdCell;
pub use postgres::PostgresCell;
pub use rows::{CellNews, CellRow, CellTurn, LogCell, LogCells, told};
pub use server::ServerCells;
