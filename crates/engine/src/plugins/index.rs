//! Every plugin that is switched on, by what a namespace needs to have to be concerned.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Plugin;
use super::compiled::{CompiledPlugin, Mode};

/// All that decide, in the order of the API server's plugins, those of one plugin by their names.
#[derive(Debug, Default)]
pub struct PluginIndex {
    all: Vec<Arc<CompiledPlugin>>,
    /// Positions of those that need a label, by its key and value.
    by_label: HashMap<String, HashMap<String, Vec<usize>>>,
    /// Positions of the others.
    others: Vec<usize>,
    /// Positions by name.
    by_name: HashMap<String, usize>,
    /// Plugins with an object that does not say `Ignore`.
    failing: BTreeSet<Plugin>,
}

impl PluginIndex {
    /// Those of these that are not off.
    pub fn build(plugins: impl IntoIterator<Item = Arc<CompiledPlugin>>) -> Self {
        Self::of(plugins.into_iter().filter(|plugin| plugin.mode != Mode::Off).collect())
    }

    fn of(mut all: Vec<Arc<CompiledPlugin>>) -> Self {
        all.sort_by(|one, other| (one.plugin, &one.name).cmp(&(other.plugin, &other.name)));
        let mut index = Self::default();
        for (position, plugin) in all.iter().enumerate() {
            index.by_name.insert(plugin.name.clone(), position);
            if !plugin.ignores() {
                index.failing.insert(plugin.plugin);
            }
            match plugin.needed_labels().min_by_key(|(_, values)| values.len()) {
                None => index.others.push(position),
                Some((key, values)) => {
                    let by_value = index.by_label.entry(key.to_owned()).or_default();
                    for value in values {
                        by_value.entry(value.clone()).or_default().push(position);
                    }
                }
            }
        }
        index.all = all;
        index
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CompiledPlugin>> {
        self.all.iter()
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<CompiledPlugin>> {
        self.all.get(*self.by_name.get(name)?)
    }

    /// Whether an object of the plugin refuses requests while the webhook does not answer.
    pub fn fails(&self, plugin: Plugin) -> bool {
        self.failing.contains(&plugin)
    }

    /// Those that may select a namespace with these labels, in their order.
    pub fn candidates(&self, labels: &BTreeMap<String, String>) -> Vec<&Arc<CompiledPlugin>> {
        let mut positions = self.others.clone();
        if !self.by_label.is_empty() {
            let found = labels.iter().filter_map(|(key, value)| self.by_label.get(key)?.get(value));
            positions.extend(found.flatten());
            positions.sort_unstable();
        }
        positions.into_iter().filter_map(|position| self.all.get(position)).collect()
    }
}
