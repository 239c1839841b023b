//! What people run beside Outrider. Their namespace enforces the restricted level of pod security.

use std::time::Instant;

use node::{APP, Node};

/// Where they run.
pub const NAMESPACE: &str = "shop";

/// What the restricted level asks of a container.
const SECURITY: &str = "{allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, \
                        seccompProfile: {type: RuntimeDefault}}";

/// Runs a step, and says how long it took.
pub fn step<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    eprintln!("{:6.1} s  {what}", start.elapsed().as_secs_f64());
    result
}

/// The containers that the set for web servers gives them: a plain one and a native sidecar, each with the port that it serves on.
pub const COMPANIONS: [(&str, u16); 2] = [("companion", 9000), ("native", 9001)];

/// A set for web servers, and one with a native sidecar for batch jobs.
pub fn apply_sets(node: &Node) {
    let [plain, native] = COMPANIONS.map(|(name, port)| {
        format!(
            "name: {name}, image: '{APP}', args: [serve, '{port}'], securityContext: {SECURITY}, \
             readinessProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1}}"
        )
    });
    let sets = format!(
        "apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  updateStrategy: {{maxUnavailable: 2}}
  containers:
  - {{{plain}}}
  initContainers:
  - {{{native}, restartPolicy: Always}}
---
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {{name: batch}}
spec:
  selector: {{matchLabels: {{app: batch}}}}
  initContainers:
  - {{name: companion, image: '{APP}', restartPolicy: Always, securityContext: {SECURITY}}}
---
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels: {{pod-security.kubernetes.io/enforce: restricted}}
"
    );
    // A pod is Ready up to a second before kube-proxy leads anybody to it (--min-sync-period).
    let applied = || {
        let output = node.cluster().kubectl(&["apply", "-f", "-"], Some(&sets))?;
        let early = output.stderr.contains("connection refused");
        assert!(output.success() || early, "{}", output.stderr);
        Ok(early.then_some(output.stderr))
    };
    step("kubectl apply of two SidecarSets", || {
        node.cluster().wait_for("the sets to be applied", applied).unwrap();
    });
}

/// A Deployment's pods get a second container, and become Ready with it.
pub fn deployment_runs_with_its_companion(node: &Node) {
    let deployment = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {NAMESPACE}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {}
",
        web_pod(),
    );
    step("a Deployment's pods Ready with their companion", || {
        apply(node, &deployment);
        kubectl(node, &["rollout", "status", "deployment/web", "--timeout=90s"], None);
    });
    let ready = "-o=jsonpath={range .items[*]}{.status.containerStatuses[?(@.ready==true)].name}{';'}{end}";
    let names = kubectl(node, &["get", "pods", "--selector=app=web", ready], None);
    assert_eq!(names, "companion web;companion web;", "two pods, each with two containers that are ready");
}

/// The spec of a pod that the first set selects.
fn web_pod() -> String {
    format!(
        "{{terminationGracePeriodSeconds: 1, containers: [{{name: web, image: '{APP}', args: [serve, '8080'], \
         securityContext: {SECURITY}, readinessProbe: {{httpGet: {{path: /, port: 8080}}, periodSeconds: 1}}}}]}}"
    )
}

/// Asks for a pod and gives the names of its containers, or why it was refused.
pub fn try_create(node: &Node) -> Result<String, String> {
    // Not all within braces: the kubectl of 1.30 takes that for JSON.
    let pod = format!(
        "apiVersion: v1
kind: Pod
metadata: {{generateName: web-, namespace: {NAMESPACE}, labels: {{app: web}}}}
spec: {}
",
        web_pod()
    );
    dry_run(node, &pod, "-o=jsonpath={.spec.containers[*].name}")
}

/// Asks for a service with more in its spec, and gives its name, or why it was refused.
pub fn try_create_service(node: &Node, more: &str) -> Result<String, String> {
    let service = format!(
        "apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {NAMESPACE}}}
spec: {{ports: [{{port: 80}}]{more}}}
"
    );
    dry_run(node, &service, "-o=jsonpath={.metadata.name}")
}

fn dry_run(node: &Node, object: &str, printed: &str) -> Result<String, String> {
    let output = node.cluster().kubectl(&["create", "--dry-run=server", "-f", "-", printed], Some(object)).unwrap();
    if output.success() { Ok(output.stdout) } else { Err(output.stderr) }
}

/// The companion is an init container that goes on running, and does not keep the Job from being complete.
pub fn job_completes_beside_a_native_sidecar(node: &Node) {
    let job = format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: batch, namespace: {NAMESPACE}}}
spec:
  backoffLimit: 0
  template:
    metadata: {{labels: {{app: batch}}}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{{name: batch, image: '{APP}', args: [sleep, '2'], securityContext: {SECURITY}}}]
"
    );
    step("a Job complete beside a native sidecar", || {
        apply(node, &job);
        kubectl(node, &["wait", "--for=condition=Complete", "job/batch", "--timeout=90s"], None);
    });
    let started = "-o=jsonpath={.items[*].status.initContainerStatuses[?(@.state.terminated.startedAt)].name}";
    assert_eq!(kubectl(node, &["get", "pods", "--selector=app=batch", started], None), "companion");
}

/// Once Outrider is gone, pods are made without it, and the namespace can be deleted.
pub fn pod_is_left_alone(node: &Node) {
    assert_eq!(try_create(node).as_deref(), Ok("web"), "nobody is asked about pods any more");
    step("the namespace of the workloads deleted", || {
        kubectl(node, &["delete", "namespace", NAMESPACE, "--timeout=90s"], None);
    });
}

fn apply(node: &Node, yaml: &str) {
    node.cluster().kubectl_ok(&["apply", "-f", "-"], Some(yaml)).unwrap();
}

fn kubectl(node: &Node, args: &[&str], stdin: Option<&str>) -> String {
    let mut all = vec!["--namespace", NAMESPACE];
    all.extend(args);
    node.cluster().kubectl_ok(&all, stdin).unwrap()
}
