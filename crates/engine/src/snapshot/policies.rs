//! Objects that are compiled one by one: on their way into snapshots, and as controllers see them.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use admission::bounded::ellipsis;
use admission::field::ErrorList;

use super::collection::{Collection, Effect};
use super::table::Table;
use crate::plugins::api::PluginStatus;
use crate::sidecarset::api::Metadata;

/// Characters of a fault that are kept, which status and log repeat: an object may have a fault in each of its values.
const FAULT_MAX_CHARS: usize = 8_000;

/// A kind of such objects.
pub trait Policy: Debug {
    /// The form that decides.
    type Compiled: Debug + PartialEq;
    /// What a snapshot holds of all of them.
    type View: Debug + Default;

    /// The kind, for log lines.
    const KIND: &'static str;

    /// Name, uid and generation are read.
    fn metadata(&self) -> &Metadata;

    /// Its status, as stored.
    fn status(&self) -> Option<&PluginStatus>;

    /// Makes the form that decides.
    ///
    /// # Errors
    /// Everything that is wrong, with its field.
    fn compile(&self) -> Result<Self::Compiled, ErrorList>;

    /// All of them, for a snapshot.
    fn view(all: impl Iterator<Item = Arc<Self::Compiled>>) -> Self::View;
}

/// One object.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<C> {
    /// Name.
    pub name: String,
    /// The uid, by which an object differs from a later one of the same name.
    pub uid: String,
    /// The generation of the spec.
    pub generation: i64,
    /// Whether the object is being deleted.
    pub terminating: bool,
    /// The status, as stored.
    pub status: Option<PluginStatus>,
    /// The form that decides: of the last generation that compiles.
    pub compiled: Option<Arc<C>>,
    /// Why this generation does not compile.
    pub fault: Option<String>,
}

/// Every object of a kind.
#[derive(Debug)]
pub struct Policies<P: Policy> {
    table: Table<Record<P::Compiled>>,
}

impl<P: Policy> Default for Policies<P> {
    fn default() -> Self {
        Self { table: Table::default() }
    }
}

impl<P: Policy> Policies<P> {
    /// The objects, for controllers.
    pub fn table(&self) -> Table<Record<P::Compiled>> {
        self.table.clone()
    }
}

/// Compiles an object. A panic is an error like others here: every replica would meet it again after a restart.
fn compile<P: Policy>(object: &P) -> Result<P::Compiled, String> {
    match catch_unwind(AssertUnwindSafe(|| object.compile())) {
        Ok(compiled) => compiled.map_err(|errors| ellipsis(&errors.to_string(), FAULT_MAX_CHARS)),
        Err(_) => Err("compiling it panicked".to_owned()),
    }
}

impl<P: Policy> Collection for Policies<P> {
    type Object = P;
    type View = P::View;

    /// Takes in an object. One that does not compile keeps the last form that did.
    fn apply(&mut self, object: &P) -> Effect {
        let metadata = object.metadata();
        let name = metadata.name.clone().unwrap_or_default();
        let uid = metadata.uid.clone().unwrap_or_default();
        let before = self.table.get(&name).filter(|record| record.uid == uid);
        let last = before.as_ref().and_then(|record| record.compiled.clone());
        let mut record = Record {
            name,
            uid,
            generation: metadata.generation.unwrap_or_default(),
            terminating: metadata.deletion_timestamp.is_some(),
            status: object.status().cloned(),
            compiled: last.clone(),
            fault: None,
        };
        match compile(object) {
            Ok(compiled) if last.as_deref() == Some(&compiled) => {}
            Ok(compiled) => record.compiled = Some(Arc::new(compiled)),
            Err(error) => {
                let (kind, name) = (P::KIND, &record.name);
                tracing::warn!(kind, name, error, "The object cannot be used; its last good form stays");
                record.fault = Some(error);
            }
        }
        if before.as_deref() == Some(&record) {
            return Effect::None;
        }
        let decides = before.is_none() || record.compiled != last;
        self.table.insert(record.name.clone(), record);
        if decides { Effect::Decisions } else { Effect::Controllers }
    }

    fn remove(&mut self, name: &str) -> Effect {
        if self.table.remove(name) { Effect::Decisions } else { Effect::None }
    }

    fn view(&mut self) -> Arc<P::View> {
        Arc::new(P::view(self.table.all().iter().filter_map(|record| record.compiled.clone())))
    }
}
