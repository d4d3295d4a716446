//! Which kind of server an address is of.

use std::sync::Arc;

use super::etcd::EtcdCell;
use super::postgres::PostgresCell;
use super::rows::{LogCell, LogCells, unknown};
use crate::base::{Env, Result};

/// Cells on real servers.
pub struct ServerCells(pub Env);

impl LogCells for ServerCells {
    fn open(&self, address: &str, id: u128) -> Result<Arc<dyn LogCell>> {
        match address.split_once("://") {
            Some(("postgresql" | "postgres", _)) => Ok(Arc::new(PostgresCell::open(address, id, self.0.clone())?)),
            Some(("etcd" | "etcds", _)) => Ok(Arc::new(EtcdCell::open(address, id, self.0.clone())?)),
            _ => Err(unknown(address)),
        }
    }
}
