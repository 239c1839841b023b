//! Where in an object something is wrong, and what, in Kubernetes' own words.
//!
//! People compare what a webhook says with what the API server says about the same field, and tools match on
//! it, so paths and messages here are spelled as in `k8s.io/apimachinery/pkg/util/validation/field`.
//!
//! ```
//! use admission::field::{Error, ErrorList, Path};
//!
//! let name = Path::new("spec").child("containers").index(0).child("name");
//! let mut errors = ErrorList::new();
//! errors.push(Error::invalid(&name, "A b", "must be lower case"));
//! assert_eq!(errors.to_string(), r#"spec.containers[0].name: Invalid value: "A b": must be lower case"#);
//! ```

mod bad_value;
mod error;
mod list;
mod path;

pub use bad_value::{BadValue, quote};
pub use error::{Error, ErrorKind};
pub use list::ErrorList;
pub use path::Path;
