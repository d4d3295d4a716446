//! Crashes, damage, lost and foreign bytes, wrong clocks, stores of earlier builds.

pub mod clocks;
pub mod corruption;
pub mod crash;
pub mod damage;
pub mod golden;
pub mod golden_on;
pub mod histories;
pub mod histories_folder;
pub mod hostile;
pub mod leftovers;
pub mod log_faults;
pub mod log_loss;
pub mod salvage;
