//! What a kind needs to be for decisions to read its objects.

use std::fmt::Debug;
use std::sync::Arc;

/// What an object changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that decisions or controllers read.
    None,
    /// Something that only controllers read, such as a status.
    Controllers,
    /// Something that decisions read.
    Decisions,
}

/// What happened to an object of a kind that is watched only while a plugin reads it.
#[derive(Debug, Clone)]
pub enum CollectionChange<K, V> {
    /// It is there, as it is here.
    Is(K, V),
    /// The object of this key is gone.
    Gone(K),
    /// All that there are have been named.
    Listed,
    /// No plugin reads them any more.
    Unwatched,
}

/// The objects of one kind, on their way into snapshots. A further kind that decisions read is one such type, one line in
/// [`Snapshot`](super::Snapshot), and one watch.
pub trait Collection: Debug + Default {
    /// What a watch gives.
    type Object;
    /// What a snapshot holds of all of them.
    type View: Debug + Default;

    /// Takes in an object that is there, as it is now.
    fn apply(&mut self, object: &Self::Object) -> Effect;

    /// Forgets an object.
    fn remove(&mut self, name: &str) -> Effect;

    /// All of them, for a snapshot.
    fn view(&mut self) -> Arc<Self::View>;
}

/// A collection, and whether the last snapshot lacks something of it.
#[derive(Debug)]
pub struct Collected<C> {
    collection: C,
    is_stale: bool,
}

impl<C: Collection> Default for Collected<C> {
    fn default() -> Self {
        // The first publication is due even when there is nothing in the cluster.
        Self { collection: C::default(), is_stale: true }
    }
}

impl<C: Collection> Collected<C> {
    /// The collection, for those who read more of it than decisions do.
    pub const fn collection(&self) -> &C {
        &self.collection
    }

    /// Takes in an object that is there, as it is now.
    pub fn apply(&mut self, object: &C::Object) -> Effect {
        let effect = self.collection.apply(object);
        self.noted(effect)
    }

    /// Forgets an object.
    pub fn remove(&mut self, name: &str) -> Effect {
        let effect = self.collection.remove(name);
        self.noted(effect)
    }

    /// Whether the last snapshot lacks something.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Puts what there is into a snapshot, if the snapshot lacks something.
    pub fn publish(&mut self, view: &mut Arc<C::View>) {
        if std::mem::take(&mut self.is_stale) {
            *view = self.collection.view();
        }
    }

    fn noted(&mut self, effect: Effect) -> Effect {
        self.is_stale |= effect == Effect::Decisions;
        effect
    }
}

/// Makes the snapshot and its builder from a list of collections, a line each.
macro_rules! collections {
    ($( $(#[$about:meta])* $name:ident: $collection:ty, )+) => {
        /// What a decision is taken from. Never changed; replaced.
        #[derive(Debug, Clone, Default)]
        pub struct Snapshot {
            /// Rises with every replacement.
            pub generation: u64,
            $( $(#[$about])* pub $name: Arc<<$collection as Collection>::View>, )+
            /// The older forms of sets that new pods get.
            pub pinned: Arc<PinnedForms>,
            /// Where no pod is touched.
            pub exclusion: Arc<Exclusion>,
            /// Whether a namespace that has not been seen may appear yet: true with a cluster, false offline.
            pub namespaces_may_appear: bool,
            /// Whether an on-demand entry may be for all resources, as the installation says.
            pub may_name_all_resources: bool,
            /// The minor version of Kubernetes that the API server is; unknown offline, and until it has answered.
            pub minor_version: Option<u32>,
            /// Whether it changes requests and limits of running pods (`pods/resize`).
            pub resizes_pods: bool,
        }

        /// What snapshots are made from.
        #[derive(Debug, Default)]
        pub struct Collections {
            $( $(#[$about])* pub $name: Collected<$collection>, )+
        }

        impl Collections {
            const fn is_stale(&self) -> bool {
                false $( || self.$name.is_stale() )+
            }

            fn publish(&mut self, snapshot: &mut Snapshot) {
                $( self.$name.publish(&mut snapshot.$name); )+
            }
        }
    };
}

pub(super) use collections;
