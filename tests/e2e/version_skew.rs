//! Replicas of two versions side by side, as while a rollout lasts: this one, and the one whose binary `OUTRIDER_PREVIOUS` names.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::process::{OUTRIDER, Outrider, eventually, printed_by};
use crate::replicas::{
    CONFIGURATIONS, Endpoints, at_address, creating_pods, get, has_ca_bundles, own_authority, service, small_cluster,
};
use crate::room::SET;
use crate::toy_webhook::Begun;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
/// Whose definition has a caBundle too.
const KIND: &str = "--enable-kinds=cronjob";
const FLAGS: [&str; 4] = [KIND, "--certificates=self", "--leader-elect", "--drain-delay=2s"];
const MUTATE_SETS: &str = "/mutate-apps-outrider-dev-v1alpha1-sidecarset";
/// What both versions serve, whatever kinds a later one adds.
const PATHS: [&str; 4] =
    ["/mutate--v1-pod", "/validate--v1-pod", MUTATE_SETS, "/validate-apps-outrider-dev-v1alpha1-sidecarset"];

/// A pod that every set of the samples selects, but the one that is paused.
const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {generateName: web-, namespace: shop, labels: {mesh: enabled, logs: 'yes', metrics: 'on', profiler: 'on', audit: full}}
spec: {automountServiceAccountToken: false, containers: [{name: app, image: 'app:1'}]}
";

fn previous() -> PathBuf {
    let binary = env::var_os("OUTRIDER_PREVIOUS");
    PathBuf::from(
        binary.expect("OUTRIDER_PREVIOUS names the binary of another version: use `make test-skew PREVIOUS=…`"),
    )
}

/// Two replicas in one cluster, behind one Service.
struct Pair {
    /// The leader, until the leader changes.
    first: Outrider,
    second: Outrider,
    binaries: [PathBuf; 2],
    endpoints: Arc<Endpoints>,
    cluster: Arc<Cluster>,
    account: PathBuf,
}

impl Pair {
    /// Definitions, roles and webhook configurations are those of `manifests`.
    fn start(manifests: &Path, binaries: [PathBuf; 2]) -> Self {
        let (cluster, account) = small_cluster();
        apply_manifests(&cluster, manifests);
        let first = Outrider::start_binary(&binaries[0], &cluster, &account, &FLAGS);
        eventually("the first leads", || first.leads());
        let second = Outrider::start_binary(&binaries[1], &cluster, &account, &FLAGS);
        first.ready();
        second.ready();
        let endpoints = Arc::new(Endpoints::default());
        endpoints.set(&[&first, &second]);
        let configurations =
            at_address(&printed_by(manifests, &["manifests", "webhooks", KIND]), service(Arc::clone(&endpoints)));
        cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&configurations)).unwrap();
        eventually("the leader has written the caBundles", || {
            has_ca_bundles(&cluster) && conversion_has_ca_bundle(&cluster)
        });
        Self { first, second, binaries, endpoints, cluster: Arc::new(cluster), account }
    }

    /// One more replica of a version, behind the same Service.
    fn start_another(&self, which: usize) -> Outrider {
        let replica = Outrider::start_binary(&self.binaries[which], &self.cluster, &self.account, &FLAGS);
        replica.ready();
        self.endpoints.add(&replica);
        replica
    }

    fn kubectl(&self, args: &[&str], manifest: Option<&str>) -> String {
        self.cluster.kubectl_ok(args, manifest).unwrap()
    }

    /// Does the same through each of the two, and gives what comes of it.
    fn through_each<T>(&self, path: &str, act: impl Fn(&Self) -> T) -> [T; 2] {
        let outcome = [&self.first, &self.second].map(|replica| {
            self.endpoints.set(&[replica]);
            let asked = || [&self.first, &self.second].map(|replica| replica.reviews(path));
            let before = asked();
            let outcome = act(self);
            let grown: Vec<bool> = asked().iter().zip(before).map(|(now, before)| *now > before).collect();
            let is_first = std::ptr::eq(replica, &raw const self.first);
            assert_eq!(grown, [is_first, !is_first], "this one was asked at {path}, and not the other one");
            outcome
        });
        self.endpoints.set(&[&self.first, &self.second]);
        outcome
    }

    /// Every set by its name.
    fn sets(&self) -> BTreeMap<String, Value> {
        let list = get(&self.cluster, &["sidecarsets"])["items"].take();
        let sets = list.as_array().unwrap().iter();
        sets.map(|set| (set["metadata"]["name"].as_str().unwrap().to_owned(), set.clone())).collect()
    }

    fn specs(&self) -> BTreeMap<String, Value> {
        self.sets().into_iter().map(|(name, mut set)| (name, set["spec"].take())).collect()
    }

    fn sets_are_observed(&self) {
        eventually("the leader has seen every set", || {
            self.sets().values().all(|set| set["status"]["observedGeneration"] == set["metadata"]["generation"])
        });
    }

    /// How many pods the set selects. At no time may one of them seem out of date, whichever replica leads.
    fn matched(&self, set: &str) -> i64 {
        let status = self.sets()[set]["status"].clone();
        assert_eq!(status["matchedPods"], status["updatedPods"], "{set}: {status}");
        status["matchedPods"].as_i64().unwrap_or_default()
    }
}

/// Definitions and roles, in place of those that are there.
fn apply_manifests(cluster: &Cluster, binary: &Path) {
    for what in ["rbac", "crds"] {
        if binary != Path::new(OUTRIDER) {
            let ours = printed_by(Path::new(OUTRIDER), &["manifests", what]);
            cluster.kubectl_ok(&["delete", "-f", "-"], Some(&ours)).unwrap();
        }
        let theirs = printed_by(binary, &["manifests", what, KIND]);
        cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&theirs)).unwrap();
    }
    cluster.wait_for_definitions().unwrap();
}

/// The definition of a kind that is converted trusts the authority too.
fn conversion_has_ca_bundle(cluster: &Cluster) -> bool {
    let definition = get(cluster, &["customresourcedefinition", "cronjobs.batch.outrider.dev"]);
    definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].is_string()
}

/// The same manifests are stored as the same sets, through either version; so is a change.
fn sets_are_the_same_through_either(pair: &Pair) {
    let manifests = format!("{FIXTURES}/manifests");
    let created = pair.through_each(MUTATE_SETS, |pair| {
        pair.kubectl(&["delete", "sidecarsets", "--all"], None);
        pair.kubectl(&["apply", "-f", &manifests], None);
        pair.specs()
    });
    assert_eq!(created[0], created[1]);
    assert!(created[0].len() > 4, "{:?}", created[0].keys());
    let changed = pair.through_each(MUTATE_SETS, |pair| {
        for image in ["proxy:3", "proxy:4"] {
            let patch = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": image}]).to_string();
            pair.kubectl(&["patch", "sidecarset", "proxy", "--type=json", "-p", &patch], None);
        }
        pair.specs()
    });
    assert_eq!(changed[0], changed[1]);
    assert_ne!(changed[0], created[0]);
    pair.sets_are_observed();
}

/// Each decides every sample the same; one may warn of what the other does not know to be worth it. The certificates of both are of
/// the authority that the first one made.
fn answers_are_the_same(pair: &Pair) {
    let ca = own_authority(&pair.cluster);
    let ask = |path: &str, review: &str| {
        [&pair.first, &pair.second].map(|replica| {
            let (status, body) = Begun::post(replica.webhooks, &ca, path, review).finish();
            let mut answer: Value =
                serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
            if let Some(response) = answer.get_mut("response").and_then(Value::as_object_mut) {
                response.remove("warnings");
            }
            format!("{status}{answer}")
        })
    };
    let three_sets = fs::read_to_string(format!("{FIXTURES}/reviews/mutate--v1-pod/three-sets.json")).unwrap();
    eventually("both know the sets as they are", || {
        let [one, other] = ask(PATHS[0], &three_sets);
        one == other && one.contains("\"patch\"")
    });
    let (mut asked, mut different) = (0, Vec::new());
    for path in PATHS {
        for file in fs::read_dir(format!("{FIXTURES}/reviews{path}")).unwrap() {
            let file = file.unwrap().path();
            let [one, other] = ask(path, &fs::read_to_string(&file).unwrap());
            asked += 1;
            if one != other {
                different.push(format!("{}\n{one}\n{other}", file.display()));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n\n"));
    assert!(asked > 50, "only {asked} samples were found");
}

/// The same pod is stored with the same containers and the same record, through either version.
fn pods_are_the_same_through_either(pair: &Pair) {
    pair.kubectl(&["create", "serviceaccount", "default", "--namespace=shop"], None);
    let mut stored = pair.through_each(PATHS[0], |pair| {
        let before = pair.matched("proxy");
        let created = pair.kubectl(&["create", "-f", "-", "-o", "json"], Some(POD));
        eventually("the pod is counted", || pair.matched("proxy") > before);
        serde_json::from_str::<Value>(&created).unwrap()
    });
    for pod in &mut stored {
        for field in ["name", "uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            pod["metadata"].as_object_mut().unwrap().remove(field);
        }
    }
    assert_eq!(stored[0], stored[1]);
    let record = stored[0]["metadata"]["annotations"]["outrider.dev/injected"].as_str().unwrap();
    let record: BTreeMap<String, Value> = serde_json::from_str(record).unwrap();
    assert_eq!(record.into_keys().collect::<Vec<_>>(), ["audit", "log-agent", "metrics", "proxy"]);
}

/// The leader ends, the other one leads and counts on, and a new one of the same version takes its place.
fn the_leader_changes(pair: &mut Pair) {
    pair.first.signal("TERM");
    pair.first.ended();
    eventually("the other version leads", || pair.second.leads());
    pods_are_counted_on(pair);
    pair.first = pair.start_another(0);
    pair.second.signal("TERM");
    pair.second.ended();
    eventually("the version that led before leads again", || pair.first.leads());
    pods_are_counted_on(pair);
}

fn pods_are_counted_on(pair: &Pair) {
    let before = pair.matched("replicated");
    eventually("the new leader counts", || pair.matched("replicated") > before);
    pair.sets_are_observed();
}

/// Everything that two versions do beside each other; the first of the binaries leads at the start.
fn serve_side_by_side(manifests: &Path, binaries: [PathBuf; 2]) {
    let mut pair = Pair::start(manifests, binaries);
    let before = versions(&pair.cluster);
    sets_are_the_same_through_either(&pair);
    answers_are_the_same(&pair);
    pods_are_the_same_through_either(&pair);
    let set = SET.replace("ROOM", "replicated").replace("proxy", "companion");
    pair.kubectl(&["apply", "-f", "-"], Some(&set));
    pair.sets_are_observed();
    let cluster = Arc::clone(&pair.cluster);
    let ((), created, failed) = creating_pods(&cluster, || the_leader_changes(&mut pair));
    assert_eq!(failed, Vec::<String>::new());
    eventually("every pod is counted", || pair.matched("replicated") == i64::try_from(created).unwrap());
    assert_eq!(versions(&pair.cluster), before, "nobody has written the webhook configurations and definitions again");
    for replica in [&pair.first, &pair.second] {
        assert_eq!(replica.forbidden(), [""; 0]);
    }
    eprintln!("{created} pods were created while the leader changed");
}

/// Name and version of the webhook configurations and definitions.
fn versions(cluster: &Cluster) -> Vec<Value> {
    let objects = get(cluster, &[&format!("{CONFIGURATIONS},customresourcedefinitions")])["items"].take();
    let version = |object: &Value| json!([object["metadata"]["name"], object["metadata"]["resourceVersion"]]);
    objects.as_array().unwrap().iter().map(version).collect()
}

#[test]
#[ignore = "needs the binary of another version: make test-skew"]
fn an_upgrade_leads_from_the_previous_version_to_this_one() {
    serve_side_by_side(Path::new(OUTRIDER), [previous(), PathBuf::from(OUTRIDER)]);
}

/// A rollback, and an upgrade of the pods alone.
#[test]
#[ignore = "needs the binary of another version: make test-skew"]
fn this_version_leads_with_the_definitions_of_the_previous_one() {
    serve_side_by_side(&previous(), [PathBuf::from(OUTRIDER), previous()]);
}
