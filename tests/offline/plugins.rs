//! What `outrider render` reports of admission plugins.

use outrider::cli::streams::CommandOutcome;

use crate::findings::{POD, SET, folder};
use crate::run::outrider;

/// A pod or an object without pods that admission plugins alone change is not injected, and not unchanged.
#[test]
fn what_plugins_alone_change_is_counted_by_itself() {
    const PLUGINS: &str = "apiVersion: policy.outrider.dev/v1alpha1\nkind: AdmissionPlugin\nmetadata: {name: storage}\nspec: {plugin: DefaultStorageClass, defaultStorageClass: {storageClassName: fast}}\n---\napiVersion: policy.outrider.dev/v1alpha1\nkind: AdmissionPlugin\nmetadata: {name: pull}\nspec: {plugin: AlwaysPullImages}\n";
    const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let folder = folder(&[("plugins.yaml", PLUGINS)]);
    let plugins = folder.path().join("plugins.yaml").display().to_string();
    let stderr = |more: &[&str], text: &str| {
        let ran = outrider(&[&["render", "--manifests", &plugins, "-f", "-"], more].concat(), text);
        assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
        ran.stderr
    };
    let of_claim = stderr(&[], CLAIM);
    let note = "stdin:1: note: PersistentVolumeClaim default/data: admission plugins: storage=PluginChanged";
    assert_eq!(of_claim, format!("{note}\n1 changed by plugins\n"), "with the namespace that it is checked in");
    assert!(stderr(&["-n", "shop"], CLAIM).contains("PersistentVolumeClaim shop/data: "));
    assert!(stderr(&[], POD).ends_with("\n1 changed by plugins\n"));
    let untouched = stderr(&[], "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
    assert!(
        untouched.contains("note: no object is a pod or has a pod template, and no admission plugin changes one"),
        "{untouched}"
    );
}

/// A controller makes the claims of these templates, and the plugins decide on each claim.
#[test]
fn templates_of_claims_are_named_as_not_rendered_where_a_plugin_decides_on_claims() {
    const PLUGIN: &str = "---\napiVersion: policy.outrider.dev/v1alpha1\nkind: AdmissionPlugin\nmetadata: {name: storage}\nspec: {plugin: DefaultStorageClass, defaultStorageClass: {storageClassName: fast}}\n";
    const DATABASE: &str = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop}\nspec:\n  selector: {matchLabels: {app: web}}\n  serviceName: db\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: db, image: 'db:1'}]}\n  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let folder = folder(&[("sets.yaml", SET), ("all.yaml", &format!("{SET}{PLUGIN}")), ("db.yaml", DATABASE)]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let stderr = |sets: &str| outrider(&["render", "--manifests", &path(sets), "-f", &path("db.yaml")], "").stderr;
    assert_eq!(stderr("sets.yaml"), "1 injected\n");
    let note =
        format!("{}:10: note: StatefulSet shop/db: spec.volumeClaimTemplates are not rendered: ", path("db.yaml"));
    assert!(stderr("all.yaml").starts_with(&note), "{}", stderr("all.yaml"));
}
