//! A table of rooms: a row each, from the ground up.

use crate::PAGE;

/// A module with a row in the table, or several that belong together.
#[derive(Debug)]
pub struct Room {
    /// The path of the first in the crate, by which others may import all of them.
    pub name: String,
    /// The paths of all.
    modules: Vec<String>,
    /// Other rooms that it may import.
    pub may_import: Vec<String>,
}

/// The rooms of a crate.
#[derive(Debug)]
pub struct Map {
    /// From the ground up.
    pub rooms: Vec<Room>,
}

impl Map {
    /// The table under a heading: a room in the first column, in the last what it may import.
    pub fn read(page: &str, heading: &str) -> Self {
        let (_, section) = page.split_once(heading).unwrap_or_else(|| panic!("{PAGE} has no section {heading:?}"));
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let rooms: Vec<Room> = rows
            .map(|row| {
                let columns: Vec<&str> = row.trim_matches('|').split('|').collect();
                let modules = codes(columns[0]);
                Room { name: modules[0].clone(), modules, may_import: codes(columns.last().unwrap()) }
            })
            .collect();
        assert!(!rooms.is_empty(), "{PAGE}: no rooms under {heading:?}");
        Self { rooms }
    }

    /// The room that a path is in: the one with the longest name that the path begins with.
    pub fn room(&self, path: &[String]) -> Option<&Room> {
        let is_in = |module: &String| {
            let mut parts = path.iter();
            module.split("::").all(|name| parts.next().is_some_and(|part| part == name))
        };
        let length = |room: &Room| room.modules.iter().filter(|module| is_in(module)).map(String::len).max();
        self.rooms.iter().filter(|room| length(room).is_some()).max_by_key(|room| length(room))
    }

    /// What is wrong with the map itself: two rows of one room, or an arrow that goes up.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (index, room) in self.rooms.iter().enumerate() {
            let above = &self.rooms[..index];
            if above.iter().any(|other| other.name == room.name) {
                faults.push(format!("{PAGE}: {} has two rows", room.name));
            }
            for imported in room.may_import.iter().filter(|name| !above.iter().any(|other| other.name == **name)) {
                faults.push(format!("{PAGE}: {} may not import {imported}: it is no row above it", room.name));
            }
        }
        faults
    }
}

/// Words in back quotes.
fn codes(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
