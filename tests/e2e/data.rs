//! Data: loaded by a Job, read back through the ingress; refused when it is
//! wrong.

mod alert_levels;
mod wrong;
