//! `NamespaceLifecycle`: namespaces that may not be deleted.
//!
//! The API server's own plugin protects `default`, `kube-system` and `kube-public`, and its list cannot be set.

use admission::format::selector::Selector;

use super::always_pull_images::TextGlob;
use super::forbidden;
use super::namespace_facts::NamespaceFacts;

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceLifecycle {
    /// Names of protected namespaces.
    pub protected: Vec<TextGlob>,
    /// Labels of protected namespaces.
    pub selector: Option<Selector>,
    /// Annotation that lifts the protection of a namespace with the value `true`.
    pub break_glass: Option<String>,
}

impl NamespaceLifecycle {
    /// Judges the deletion of a namespace.
    ///
    /// # Errors
    /// Why it is refused, in the API server's words.
    pub fn check(&self, namespace: &NamespaceFacts<'_>, name: &str) -> Result<(), String> {
        let is_named = self.protected.iter().any(|glob| glob.matches(name));
        let is_protected = is_named || self.selector.as_ref().is_some_and(|selector| namespace.is_selected(selector));
        let lifts = |key: &String| namespace.annotation(key) == Some("true");
        if is_protected && !self.break_glass.as_ref().is_some_and(lifts) {
            let help = self.break_glass.as_ref().map(|key| format!("; annotate it with {key}=true first"));
            let why = format!("this namespace may not be deleted{}", help.unwrap_or_default());
            return Err(forbidden("namespaces", name, &why));
        }
        Ok(())
    }
}
