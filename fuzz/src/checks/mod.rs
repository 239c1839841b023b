//! What must hold for any bytes. One module a target; each has a `check` that panics where something does not hold.

pub mod certificates;
pub mod cluster;
pub mod conversion;
pub mod cron;
pub mod expression;
pub mod kept;
pub mod pod;
pub mod pod_of_bytes;
pub mod quantity;
pub mod review;
pub mod selector;
pub mod set;
pub mod yaml;

/// A check of the bytes of one input.
pub type Check = fn(&[u8]);

/// Every target, with its check. A folder of that name is in `fuzz/seeds` and in `fuzz/regressions`.
pub const TARGETS: [(&str, Check); 10] = [
    ("certificates", certificates::check),
    ("conversion", conversion::check),
    ("cron", cron::check),
    ("expression", expression::check),
    ("pod", pod::check),
    ("quantity", quantity::check),
    ("review", review::check),
    ("selector", selector::check),
    ("set", set::check),
    ("yaml", yaml::check),
];
