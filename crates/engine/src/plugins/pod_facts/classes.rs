//! The classes of a pod: of priority, and of runtimes.

use admission::patch::{PatchWriter, quoted};

use super::Spec;

/// Classes that plugins gave a pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub(super) priority: Option<String>,
    pub(super) runtime: Option<String>,
}

impl Spec<'_> {
    /// The name of its `PriorityClass`: the one that a plugin gave it, else its own.
    pub fn priority_class(&self) -> Option<&str> {
        let own = Some(self.priority_class_name.as_str()).filter(|name| !name.is_empty());
        self.given.priority.as_deref().or(own)
    }

    /// The class of runtimes.
    pub fn runtime_class(&self) -> Option<&str> {
        let own = Some(self.runtime_class_name.as_str()).filter(|name| !name.is_empty());
        self.given.runtime.as_deref().or(own)
    }

    /// The number and the policy of another class are taken away: the API server fills in those of the class, and refuses any others.
    pub(super) fn patch_classes(&self, patch: &mut PatchWriter) {
        let differs = |given: &&String, own: &str| given.as_str() != own;
        if let Some(class) = self.given.priority.as_ref().filter(|given| differs(given, &self.priority_class_name)) {
            patch.add("/spec/priorityClassName", &quoted(class));
            for (field, is_there) in
                [("priority", self.priority.is_some()), ("preemptionPolicy", self.preemption_policy.is_some())]
            {
                if is_there {
                    patch.remove(&format!("/spec/{field}"));
                }
            }
        }
        if let Some(class) = self.given.runtime.as_ref().filter(|given| differs(given, &self.runtime_class_name)) {
            patch.add("/spec/runtimeClassName", &quoted(class));
        }
    }
}
