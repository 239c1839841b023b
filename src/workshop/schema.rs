//! Words to write structural schemas with.
