//! A controller of a kind with objects of its own: watches, a queue of keys, and a function that reconciles one object.
//!
//! An event of an owned object is an event of its owner. What is watched is kept whole, without managedFields, for the
//! reconciles to read; so narrow the watch of a common kind by labels.

pub mod apply;
pub mod conditions;
pub mod leader_term;
pub mod options;
pub mod owned;
pub mod owner;
pub mod queue;
mod retired;
pub mod scope;
pub mod status;
mod store;
mod watch;
pub mod work_queue;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

pub use self::retired::is_retired;
pub use self::store::{Key, Store};
use crate::controller::apply::Applier;
use crate::controller::leader_term::LeaderTerm;
use crate::controller::options::{ControllerOptions, WORKERS};
use crate::controller::queue::{Queue, ReconcileError, add_all};
use crate::controller::scope::Scoped;
use crate::metrics::Metrics;
use crate::watch::coverage::Coverage;
use crate::watch::in_order::InOrder;
use crate::watch::read_model::ReadModel;

/// One object is reconciled at most once in this time: a burst of events is one run.
const PACE: Duration = Duration::from_millis(100);

/// When to reconcile an object again if nothing happens before.
pub type Again = Option<Duration>;

/// What a controller gets from the manager.
#[derive(Clone)]
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The same, by a client that sends each request once: for what must not be done twice, and for refusals that are an answer.
    pub client_without_retries: Client,
    /// Counts reconciles.
    pub metrics: Metrics,
    /// How controllers run.
    pub options: ControllerOptions,
    /// How long the controller works.
    pub term: LeaderTerm,
    /// What decisions are taken from, and what changes in it.
    pub model: ReadModel,
    /// The pods for which the API server is known to call the webhook.
    pub coverage: Receiver<Coverage>,
    /// The on-demand entries that the API server is known to have.
    pub in_order: Receiver<InOrder>,
    /// Where our own objects and the other replicas are.
    pub own: Own,
}

/// Where our own objects and the other replicas are.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Our own namespace.
    pub namespace: String,
    /// The port of the probes of every replica; none where they are off.
    pub health_port: Option<u16>,
}

/// What can be watched.
pub trait Watchable:
    Resource<DynamicType = (), Scope: Scoped> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl<K> Watchable for K where
    K: Resource<DynamicType = (), Scope: Scoped> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

/// A controller of `K`, in the making.
pub struct Operator<K> {
    name: &'static str,
    context: Context,
    queue: Queue<Key>,
    objects: Store<K>,
    workers: usize,
    watches: Vec<BoxFuture<'static, ()>>,
    listed: Vec<CancellationToken>,
}

impl<K: Watchable> Operator<K> {
    /// A controller of every `K` in the cluster, or in the namespace that the options name. `name` is what `--controllers`, logs and metrics call it.
    pub fn new(name: &'static str, context: Context) -> Self {
        let queue = Queue::new(name, K::kind(&()), PACE, &context.metrics);
        let mut operator = Self {
            name,
            context,
            queue,
            objects: Store::default(),
            workers: WORKERS,
            watches: Vec::new(),
            listed: Vec::new(),
        };
        operator.objects =
            operator.watching(None, |old: Option<&K>, new| new.or(old).map(Key::of).into_iter().collect::<Vec<_>>());
        operator
    }

    /// Reconciles so many objects at one time, unless the options have another number.
    pub const fn reconciling_at_once(&mut self, workers: usize) {
        self.workers = workers;
    }

    /// Every `K`, as far as the watch has reported.
    pub fn objects(&self) -> Store<K> {
        self.objects.clone()
    }

    /// Watches objects that a `K` controls; `labels` is a selector that all of them fit.
    pub fn owning<C: Watchable>(&mut self, labels: Option<&str>) -> Store<C> {
        self.watching(labels, |old: Option<&C>, new| {
            [old, new].into_iter().flatten().filter_map(owner::owner_key::<K, C>).collect::<Vec<_>>()
        })
    }

    /// Watches objects that a `K` controls and keeps by server-side apply, as this field manager; `labels` is a selector that all of
    /// them fit.
    pub fn keeping<C>(&mut self, field_manager: &'static str, labels: Option<&str>) -> Applier<C>
    where
        C: Resource<DynamicType = (), Scope: Scoped> + Serialize + 'static,
    {
        let watched = self.owning(labels);
        Applier::new(self.context.client.clone(), field_manager, watched)
    }

    /// Watches objects that some `K` depend on. `touched` gets the object before and after, and gives the keys of those `K`;
    /// it is called once for each version of the object that the watch reports.
    pub fn watching<C: Watchable, T: IntoIterator<Item = Key> + Send>(
        &mut self,
        labels: Option<&str>,
        mut touched: impl FnMut(Option<&C>, Option<&C>) -> T + Send + 'static,
    ) -> Store<C> {
        let (store, listed, queue) = (Store::default(), CancellationToken::new(), self.queue.clone());
        let (kept, was_listed) = (store.clone(), listed.clone());
        let (client, watches) = (self.context.client.clone(), self.context.model.ungated.clone());
        let namespace = self.context.options.namespace_of::<C>().map(str::to_owned);
        let labels = labels.map(str::to_owned);
        let watch = async move {
            let changed = move |old: Option<&C>, new: Option<&C>| {
                for key in touched(old, new) {
                    queue.add(key);
                }
            };
            watch::follow(client, namespace.as_deref(), &watches, labels, kept, was_listed, changed).await;
        };
        self.watches.push(Box::pin(watch));
        self.listed.push(listed);
        store
    }

    /// Runs until the term ends, and then finishes what it has begun. `reconcile` gets `with`, and an object. It is called only once
    /// every watch has listed all that there is; if that takes longer than the options allow, the controller ends, to be started again.
    pub fn run<W, E, F, R>(self, with: W, reconcile: R) -> BoxFuture<'static, ()>
    where
        W: Send + Sync + 'static,
        E: ReconcileError + 'static,
        F: Future<Output = Result<Again, E>> + Send + 'static,
        R: Fn(Arc<W>, Arc<K>) -> F + Clone + Send + Sync + 'static,
    {
        let with = Arc::new(with);
        self.reconciling(move |object| reconcile(Arc::clone(&with), object)).boxed()
    }

    async fn reconciling<E, F, R>(self, reconcile: R)
    where
        E: ReconcileError,
        F: Future<Output = Result<Again, E>> + Send,
        R: Fn(Arc<K>) -> F + Clone + Send + Sync + 'static,
    {
        let Self { name, context, queue, objects, workers, watches, listed } = self;
        let Context { options, term, .. } = context;
        let resync = options.resync(|| add_all(&queue, objects.all().iter().map(|object| Key::of(&**object))));
        let objects = objects.clone();
        let reconcile_key = move |key: Key| {
            let (object, reconcile) = (objects.get(&key), reconcile.clone());
            async move {
                match object {
                    Some(object) => reconcile(object).await,
                    None => Ok(None),
                }
            }
        };
        let reconciles = async {
            let told = async {
                for listed in listed {
                    listed.cancelled().await;
                }
            };
            if term.until_ending(options.listed_in_time(name, told)).await == Some(true) {
                let workers = options.workers_or(&K::kind(&()), &K::group(&()), workers);
                queue.run(workers, reconcile_key, term).await;
            }
        };
        tokio::select! {
            _ = join_all(watches) => {}
            () = resync => {}
            () = reconciles => {}
        }
    }
}
