//! Modules of the process, under the path that they name each other by.

pub mod cronjob;
