//! What the two pod endpoints answer, asked as the server asks them.

mod additions;
mod adoption;
mod after_creation;
mod app_containers;
mod clashes;
mod evasions;
mod explain;
mod fit;
mod hostile;
mod hot_upgrade;
mod jobs;
mod legality;
mod matching;
mod metadata;
mod older;
mod opt_out;
mod order;
mod overrides;
mod properties;
mod resources;
mod second_pass;
mod skips;
mod stages;
mod taking;
mod twin;
mod volumes;
