//! Types that represent objects of another kind.

/// Makes a type, with its metadata in a field of that name, the [`Resource`](kube::Resource) that its first parameter is.
macro_rules! resource_of_kind {
    ($of_kind:ident<K $(, $other:ident)*>) => {
        impl<K: kube::Resource $(, $other)*> kube::Resource for $of_kind<K $(, $other)*> {
            type DynamicType = K::DynamicType;
            type Scope = K::Scope;

            fn kind(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::kind(dt)
            }

            fn group(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::group(dt)
            }

            fn version(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::version(dt)
            }

            fn plural(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::plural(dt)
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use resource_of_kind;
