//! Owner references as watches keep them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The longest text of a reference to anything that exists. The API server takes longer ones.
const TEXT_MAX_BYTES: usize = 253;

/// The owner that controls an object, of whom there is one at most; none whose name, uid, kind or version is longer than any is.
pub fn controller_among(owners: Option<Vec<OwnerReference>>) -> Option<Vec<OwnerReference>> {
    let found = owners?.into_iter().find(|owner| owner.controller == Some(true))?;
    let texts = [&found.name, &found.uid, &found.kind, &found.api_version];
    texts.iter().all(|text| text.len() <= TEXT_MAX_BYTES).then(|| vec![found])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_kept_unless_nothing_can_be_called_so() {
        let owner = |name: &str, controller| OwnerReference {
            name: name.to_owned(),
            controller: Some(controller),
            ..OwnerReference::default()
        };
        let owners = |controller: &str| Some(vec![owner("other", false), owner(controller, true)]);
        let kept = |controller: &str| controller_among(owners(controller)).map(|kept| kept[0].name.clone());
        assert_eq!(kept("a").as_deref(), Some("a"));
        assert_eq!(kept(&"a".repeat(TEXT_MAX_BYTES)).map(|name| name.len()), Some(TEXT_MAX_BYTES));
        assert_eq!(kept(&"a".repeat(TEXT_MAX_BYTES + 1)), None);
        assert_eq!((controller_among(None), controller_among(Some(vec![owner("a", false)]))), (None, None));
    }
}
