//! The kinds that are watched, and what each may cost.

use std::any::Any;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use outrider::controller::owned::Owned;
use outrider::watch::deployment::PartialDeployment;
use outrider::watch::nodes::Nodes;
use outrider::watch::quotas::Quotas;
use outrider::watch::service_accounts::ServiceAccounts;
use outrider::watch::storage_classes::StorageClasses;
use outrider::workshop::collector::watched::PartialPod as CollectorPod;
use outrider::workshop::cronjob::api::CronJob;
use outrider::workshop::cronjob::controller::watched_job::WatchedJob;
use outrider::workshop::simpledeployment::api::SimpleDeployment;
use outrider::workshop::welcome::api::Welcome;

use crate::examples::{
    account, class, collector, configuration, cronjob, deployment, full_accounts, full_collectors, full_configurations,
    full_cronjobs, full_jobs, full_limit_ranges, full_namespaces, full_plugins, full_pods, full_quotas, full_ranges,
    full_revisions, full_secrets, full_security_profiles, full_selectors, full_sets, full_status, job, namespace,
    plugin, pod, quota, range, revision, secret, security_profile, set, simple,
};
use crate::keep::{
    collectors, configurations, limits_of_namespaces, namespaces, objects, plugins, pods, ranges, revisions, secrets,
    security_profiles, sets, while_read,
};
use crate::objects::Object;

/// A kind as a process keeps it.
pub struct Kind {
    pub name: &'static str,
    /// What is watched, as rules of RBAC name it: group and plural.
    pub resource: (&'static str, &'static str),
    pub kept_by: &'static str,
    /// Keeps objects of these texts.
    pub keep: fn(&[String]) -> Box<dyn Any>,
    object: fn() -> Object,
    /// The places where a user may write anything, and what.
    full: fn(&Object) -> Vec<Object>,
    /// Bytes that it may cost where twice the bytes of its JSON are fewer; times, if it is otherwise.
    pub allowed: usize,
    at_most: bool,
}

impl Kind {
    pub fn ordinary(&self) -> Object {
        (self.object)()
    }

    pub fn hostile(&self) -> Vec<Object> {
        let mut all = self.ordinary().and_full_metadata();
        all.pop();
        all.extend((self.full)(&self.ordinary()));
        all
    }

    /// The bytes that may be kept of so many of JSON.
    pub fn limit(&self, json: usize) -> usize {
        if self.at_most { self.allowed } else { self.allowed.max(2 * json) }
    }

    pub fn limit_in_words(&self) -> String {
        let kib = self.allowed / 1024;
        if self.at_most { format!("{kib} KiB") } else { format!("twice its bytes, or {kib} KiB") }
    }
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "Pod",
        resource: ("", "pods"),
        kept_by: "the leader, of every pod",
        keep: pods,
        object: pod,
        full: full_pods,
        allowed: 2048,
        at_most: true,
    },
    Kind {
        name: "Namespace",
        resource: ("", "namespaces"),
        kept_by: "every replica",
        keep: namespaces,
        object: namespace,
        full: full_namespaces,
        allowed: 256 * 1024,
        at_most: true,
    },
    Kind {
        name: "SidecarSet",
        resource: ("apps.outrider.dev", "sidecarsets"),
        kept_by: "every replica",
        keep: sets,
        object: set,
        full: full_sets,
        allowed: 8 * 1024 * 1024,
        at_most: true,
    },
    Kind {
        name: "ControllerRevision",
        resource: ("apps", "controllerrevisions"),
        kept_by: "every replica, of sets",
        keep: revisions,
        object: revision,
        full: full_revisions,
        allowed: 4 * 1024,
        at_most: false,
    },
    Kind {
        name: "AdmissionPlugin",
        resource: ("policy.outrider.dev", "admissionplugins"),
        kept_by: "every replica",
        keep: plugins,
        object: plugin,
        full: full_plugins,
        allowed: 96 * 1024,
        at_most: false,
    },
    Kind {
        name: "ClusterLimitRange",
        resource: ("policy.outrider.dev", "clusterlimitranges"),
        kept_by: "every replica",
        keep: ranges,
        object: range,
        full: full_ranges,
        allowed: 128 * 1024,
        at_most: false,
    },
    Kind {
        name: "PodSecurityProfile",
        resource: ("policy.outrider.dev", "podsecurityprofiles"),
        kept_by: "every replica",
        keep: security_profiles,
        object: security_profile,
        full: full_security_profiles,
        allowed: 128 * 1024,
        at_most: false,
    },
    Kind {
        name: "ResourceQuota",
        resource: ("", "resourcequotas"),
        kept_by: "every replica, while a plugin `ResourceQuota` is on",
        keep: while_read::<Quotas>,
        object: quota,
        full: full_quotas,
        allowed: 4 * 1024,
        at_most: false,
    },
    Kind {
        name: "LimitRange",
        resource: ("", "limitranges"),
        kept_by: "the leader, while there are sets",
        keep: limits_of_namespaces,
        object: range,
        full: full_limit_ranges,
        allowed: 32 * 1024,
        at_most: true,
    },
    Kind {
        name: "StorageClass",
        resource: ("storage.k8s.io", "storageclasses"),
        kept_by: "every replica, while a plugin `DefaultStorageClass` or `PersistentVolumeClaimResize` is on",
        keep: while_read::<StorageClasses>,
        object: class,
        full: full_status,
        allowed: 4 * 1024,
        at_most: true,
    },
    Kind {
        name: "Node",
        resource: ("", "nodes"),
        kept_by: "every replica, while a plugin `PodTopologyLabels` is on",
        keep: while_read::<Nodes>,
        object: namespace,
        // Only its metadata is sent.
        full: |_| Vec::new(),
        allowed: 64 * 1024,
        at_most: true,
    },
    Kind {
        name: "ServiceAccount",
        resource: ("", "serviceaccounts"),
        kept_by: "every replica, while a plugin `ServiceAccount` is on",
        keep: while_read::<ServiceAccounts>,
        object: account,
        full: full_accounts,
        allowed: 4 * 1024,
        at_most: false,
    },
    Kind {
        name: "Secret",
        resource: ("", "secrets"),
        kept_by: "every replica, the one of image policies, while a plugin `ImagePolicyWebhook` is on",
        keep: secrets,
        object: secret,
        full: full_secrets,
        allowed: 256 * 1024,
        at_most: false,
    },
    Kind {
        name: "ConfigMap",
        resource: ("", "configmaps"),
        kept_by: "every replica, the one of its configuration",
        keep: configurations,
        object: configuration,
        full: full_configurations,
        allowed: 16 * 1024 * 1024,
        at_most: false,
    },
    Kind {
        name: "CronJob",
        resource: ("batch.outrider.dev", "cronjobs"),
        kept_by: "the leader",
        keep: objects::<CronJob>,
        object: cronjob,
        full: full_cronjobs,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Job",
        resource: ("batch", "jobs"),
        kept_by: "the leader with `CronJob`, of every Job",
        keep: objects::<WatchedJob>,
        object: job,
        full: full_jobs,
        allowed: 4 * 1024,
        at_most: true,
    },
    Kind {
        name: "SimpleDeployment",
        resource: ("apps.outrider.dev", "simpledeployments"),
        kept_by: "the leader",
        keep: objects::<SimpleDeployment>,
        object: simple,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Welcome",
        resource: ("webapp.outrider.dev", "welcomes"),
        kept_by: "the leader",
        keep: objects::<Welcome>,
        object: simple,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Deployment",
        resource: ("apps", "deployments"),
        kept_by: "the leader, of those with Outrider's label",
        keep: objects::<Owned<Deployment>>,
        object: deployment,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Service",
        resource: ("", "services"),
        kept_by: "the leader, of those with Outrider's label",
        keep: objects::<Owned<Service>>,
        object: deployment,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Collector",
        resource: ("collector.ip.outrider.dev", "collectors"),
        kept_by: "the leader",
        keep: collectors,
        object: collector,
        full: full_collectors,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Deployment of a Collector",
        resource: ("apps", "deployments"),
        kept_by: "the leader with `Collector`, of every Deployment",
        keep: objects::<PartialDeployment>,
        object: deployment,
        full: full_selectors,
        allowed: 16 * 1024,
        at_most: false,
    },
    Kind {
        name: "Pod of a Collector",
        resource: ("", "pods"),
        kept_by: "the leader with `Collector`, of every pod",
        keep: objects::<CollectorPod>,
        object: pod,
        full: full_pods,
        allowed: 16 * 1024,
        at_most: false,
    },
];
