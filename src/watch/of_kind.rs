//! Types that represent objects of another kind.

/// Makes a type the [`Resource`](kube::Resource) that its first parameter is: with its metadata in a field of that name, or with
/// other ways to it.
macro_rules! resource_of_kind {
    ($of_kind:ident<K $(, $other:ident)*>) => {
        $crate::watch::resource_of_kind!($of_kind<K $(, $other)*>: kube::Resource, this => &this.metadata, &mut this.metadata);
    };
    ($of_kind:ident<K $(, $other:ident)*>: $bound:path, $this:ident => $meta:expr, $meta_mut:expr) => {
        impl<K: $bound $(, $other)*> kube::Resource for $of_kind<K $(, $other)*> {
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
                let $this = self;
                $meta
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                let $this = self;
                $meta_mut
            }
        }
    };
}

pub(crate) use resource_of_kind;
