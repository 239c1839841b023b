//! `CronJob`: a Job for every time of a schedule.

pub mod schedule;
