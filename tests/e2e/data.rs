//! Data: loaded by a Job, read back through the ingress; refused when it is
//! wrong; absent after an install that loaded none.

mod absent;
mod alert_levels;
mod wrong;
