//! What an open store is made of: values with private fields and a narrow interface each. None of them knows [`super::Store`], or any
//! operation of one; operations say by what they take which of them they need.

mod attendance;
mod background;
mod commits;
mod handles;
pub(super) mod recover;
mod reserved;
mod session;
mod setting;
mod times;
mod triggers;
mod upkeep;
mod watched;

pub(super) use attendance::Attendance;
pub(super) use commits::feeds::{CommitRecord, OpenFeed};
pub(super) use commits::pins::Pin;
pub(super) use commits::proof::{TableProof, UniqueProof, adding};
pub(super) use commits::proposal::{Proposal, Work, admit};
pub(super) use commits::queue::Answer;
pub(super) use commits::turns::Commits;
pub(super) use commits::view_proof::{
    SourceDelta, VIEWS_DEPTH_MAX, ViewChange, ViewProof, changed_sources, refuse_view,
};
pub(super) use handles::Handles;
pub(super) use reserved::Reserved;
pub(super) use setting::{Setting, Tenure, check_process, holder};
pub(super) use times::STEP;
pub(super) use triggers::{Registered, RowTrigger, TriggerList, Triggers};
pub use triggers::{TriggerCall, TriggerEvent, TriggerFailure, TriggerFn};
pub(super) use upkeep::{Maintenance, NamedWindow, Upkeep};
pub(super) use watched::Watched;
