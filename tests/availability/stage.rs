//! A control plane whose API server reaches replicas of Outrider through a Service, as in a real cluster.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::runtime::Runtime;

use crate::forged_pods::forged_pods;
use crate::hostile_objects::{self, CRON_JOBS, large_cronjobs};
use crate::kubelet::Kubelets;
use crate::pods::{Pods, pod};
use crate::process::{Outrider, eventually, install_of, outrider, service_account_of};

/// The namespace of hostile objects, and how many strange `CronJob`s are in it, of this seed.
const ATTACKED: &str = "attacked";
const STRANGE: usize = 50;
const SEED: u64 = 2;

/// Creates a second.
const RATE: u32 = 50;

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: outrider-webhook, namespace: outrider-system}
spec: {ports: [{name: webhook, port: 443, targetPort: 9443}]}
";

const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: proxy, image: 'proxy:1'}]
";

/// Long times of the defaults, compressed.
const FLAGS: [&str; 6] = [
    CRON_JOBS,
    "--leader-elect",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
    "--drain-delay=3s",
];

pub struct Stage {
    pub cluster: Cluster,
    pub client: Client,
    pub runtime: Runtime,
    pub kubelets: Kubelets,
    /// The kubeconfig that replicas are started with.
    pub account: PathBuf,
    addresses: u8,
}

/// A replica on an address of its own; it is killed when this is dropped.
#[must_use]
pub struct Replica {
    pub address: Ipv4Addr,
    pub process: Outrider,
}

impl Stage {
    /// Everything but replicas and certificates. Needs [`cluster::in_own_network`].
    pub fn set_up() -> Self {
        let options = Options {
            kwok: false,
            controller_manager: false,
            // Requests to a Service go to its ready endpoints, without kube-proxy.
            extra_apiserver_args: vec!["--enable-aggregator-routing=true".to_owned()],
            ..Options::default()
        };
        let cluster = Cluster::start_with(&options).unwrap();
        install_of(&cluster, &[CRON_JOBS]);
        let account = service_account_of(&cluster, &[CRON_JOBS]);
        // The controller-manager would make it.
        cluster.kubectl_ok(&["create", "serviceaccount", "default"], None).unwrap();
        cluster.kubectl_ok(&["apply", "-f", "-"], Some(SERVICE)).unwrap();
        let runtime = Runtime::new().unwrap();
        let client = runtime.block_on(client(&cluster));
        let kubelets = Kubelets::new(client.clone(), cluster.minor_version());
        runtime.spawn(kubelets.clone().run());
        Self { cluster, client, runtime, kubelets, account, addresses: 10 }
    }

    /// Stores what users may have stored while no webhook looked: pods whose annotations name tens of thousands of sets, large and
    /// strange `CronJob`s, and sets that cannot be used.
    pub fn store_hostile_objects(&self) {
        let kubectl = |args: &[&str], input: Option<&str>| self.cluster.kubectl_ok(args, input).unwrap();
        kubectl(&["create", "namespace", ATTACKED], None);
        kubectl(&["create", "serviceaccount", "default", "--namespace", ATTACKED], None);
        let create = |objects: &[String]| {
            let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, objects.join(","));
            kubectl(&["create", "--validate=false", "--namespace", ATTACKED, "-f", "-"], Some(&list));
        };
        let texts = |objects: Vec<serde_json::Value>| objects.iter().map(ToString::to_string).collect::<Vec<_>>();
        texts(forged_pods()).chunks(10).for_each(create);
        let strange = hostile_objects::cronjobs(SEED, STRANGE).into_iter().map(|(_, object)| object);
        strange.collect::<Vec<_>>().chunks(10).for_each(create);
        large_cronjobs().chunks(1).for_each(create);
        texts(hostile_objects::sets()).chunks(1).for_each(create);
    }

    /// Checks that all of the stored `CronJob`s can be read in the version that is not stored.
    pub fn all_are_converted(&self) {
        let names = ["get", "-o", "name", "cronjobs.v2.batch.outrider.dev", "--namespace", ATTACKED];
        let listed = self.cluster.kubectl_ok(&names, None).unwrap();
        assert_eq!(listed.lines().count(), STRANGE + large_cronjobs().len());
    }

    /// A new replica that is an endpoint.
    pub fn replica(&mut self, flags: &[&str]) -> Replica {
        let replica = self.start(flags);
        eventually("the replica is an endpoint", || self.kubelets.is_endpoint(replica.address));
        replica
    }

    /// A new replica that may not be ready yet.
    pub fn start(&mut self, flags: &[&str]) -> Replica {
        self.addresses += 1;
        let address = Ipv4Addr::new(192, 0, 2, self.addresses);
        let bind = format!("--webhook-bind-address={address}:9443");
        let flags = [&FLAGS[..], &[bind.as_str()], flags].concat();
        let process = Outrider::start(&self.cluster, &self.account, &flags);
        self.kubelets.add(address, process.health());
        Replica { address, process }
    }

    /// Ends a replica as the deletion of its pod does: the kubelet sends SIGTERM while the news spreads.
    pub fn end(&self, mut replica: Replica) {
        replica.process.signal("TERM");
        self.kubelets.terminating(replica.address);
        replica.process.ended();
        self.kubelets.remove(replica.address);
    }

    /// Registers the webhooks, without caBundle.
    pub fn register(&self) {
        let webhooks = outrider(&["manifests", "webhooks", CRON_JOBS]);
        self.cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks)).unwrap();
    }

    /// Applies the set, and waits until pods are injected and, since API servers learn of webhooks a little later, keep being.
    pub fn apply_set(&self) {
        let applied = || self.cluster.kubectl(&["apply", "-f", "-"], Some(SET)).unwrap().success();
        eventually("the set is applied", applied);
        let mut in_a_row = 0;
        let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::default_namespaced(self.client.clone());
        eventually("pods are injected", || {
            let created = self.runtime.block_on(pods.create(&kube::api::PostParams::default(), &pod()));
            let injected = created.is_ok_and(|pod| pod.spec.unwrap_or_default().containers.len() == 2);
            in_a_row = if injected { in_a_row + 1 } else { 0 };
            in_a_row > 5
        });
    }

    /// The certificate of Outrider's own authority.
    pub fn own_ca(&self) -> String {
        let secret = ["get", "secret", "outrider-ca", "--namespace=outrider-system", "-o=jsonpath={.data.tls\\.crt}"];
        String::from_utf8(STANDARD.decode(self.cluster.kubectl_ok(&secret, None).unwrap()).unwrap()).unwrap()
    }

    /// Gives the lease to a holder that does not renew it.
    pub fn steal_lease(&self) {
        let patch = r#"{"spec":{"holderIdentity":"thief","leaseDurationSeconds":1}}"#;
        let args =
            ["patch", "lease", "outrider.outrider.dev", "--namespace=outrider-system", "--type=merge", "-p", patch];
        self.cluster.kubectl_ok(&args, None).unwrap();
    }

    /// Begins to create pods, at the rate that everything here is shown at.
    pub fn create_pods(&self, phase: &str) -> Pods {
        Pods::create(self.runtime.handle(), self.client.clone(), pod(), RATE, phase)
    }
}

async fn client(cluster: &Cluster) -> Client {
    let file = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    // A client that counts must not hide anything.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
