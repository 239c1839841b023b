//! What the manager is asked to do.

use crate::manager::lease::Times;
use crate::sidecarset::controller;
use crate::world::Exclusion;

/// Every controller, by the name that `--controllers` takes.
pub const CONTROLLERS: [&str; 1] = [controller::NAME];

/// What the manager is asked to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Our own namespace: the lease's, the Secret's, and excluded.
    pub namespace: String,
    /// Further excluded namespaces.
    pub excluded_namespaces: Vec<String>,
    /// Controllers to run.
    pub controllers: Controllers,
    /// With several replicas: the election of the one that writes.
    pub election: Option<Election>,
    /// Where the serving certificate comes from.
    pub certificates: Certificates,
    /// The URL under which the API server is to call this process, outside the cluster.
    pub webhook_url: Option<String>,
}

impl Options {
    /// Where pods are left alone.
    pub fn exclusion(&self) -> Exclusion {
        Exclusion::new(&self.namespace, self.excluded_namespaces.iter().cloned())
    }
}

/// An election.
#[derive(Debug, Clone)]
pub struct Election {
    /// Name of the lease.
    pub lease: String,
    /// Its times.
    pub times: Times,
}

/// Where the serving certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificates {
    /// From somebody else, who sees to the caBundle too. With a `webhook_url`, the authority's certificate as PEM is needed.
    Elsewhere {
        /// The authority's certificate.
        ca_bundle: Option<String>,
    },
    /// From our own authority.
    Own,
}

/// Which controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controllers(Vec<&'static str>);

/// A word of `--controllers` that names no controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no controller {0:?}; there are {all}, * for all of them, and -NAME to leave one out", all = CONTROLLERS.join(", "))]
pub struct UnknownController(String);

impl Controllers {
    /// Reads the words of `--controllers`: `*`, `name`, `-name`, wherever they stand.
    ///
    /// # Errors
    /// [`UnknownController`].
    pub fn parse(words: &[impl AsRef<str>]) -> Result<Self, UnknownController> {
        let words: Vec<&str> = words.iter().map(|word| word.as_ref().trim()).filter(|word| !word.is_empty()).collect();
        let unknown = |word: &&&str| **word != "*" && !CONTROLLERS.contains(&word.trim_start_matches('-'));
        if let Some(word) = words.iter().find(unknown) {
            return Err(UnknownController((*word).to_owned()));
        }
        let named = |name: &str| words.iter().any(|word| *word == "*" || *word == name);
        let removed = |name: &str| words.iter().any(|word| word.strip_prefix('-') == Some(name));
        Ok(Self(CONTROLLERS.into_iter().filter(|name| named(name) && !removed(name)).collect()))
    }

    /// Whether the controller runs.
    pub fn run(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_named_starred_or_left_out() {
        for (words, runs) in [
            (vec!["*"], true),
            (vec!["sidecarset"], true),
            (vec!["*", "-sidecarset"], false),
            (vec!["-sidecarset", "*"], false),
            (vec![], false),
            (vec![""], false),
        ] {
            assert_eq!(Controllers::parse(&words).unwrap().run("sidecarset"), runs, "{words:?}");
        }
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_list() {
        let error = Controllers::parse(&["*", "-sidecarsets"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no controller \"-sidecarsets\"; there are sidecarset, * for all of them, and -NAME to leave one out"
        );
    }
}
