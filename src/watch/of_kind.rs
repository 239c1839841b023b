//! Types that represent objects of another kind.

/// Makes a type the [`Resource`](kube::Resource) that another kind is, or that its first parameter is: with its metadata in a field of
/// that name, or with other ways to it.
macro_rules! resource_of_kind {
    ($of_kind:ident: $kind:ty) => {
        $crate::watch::resource_of_kind!(@impl [] $of_kind, $kind, this => &this.metadata, &mut this.metadata);
    };
    ($of_kind:ident<K $(, $other:ident)*>) => {
        $crate::watch::resource_of_kind!($of_kind<K $(, $other)*>: kube::Resource, this => &this.metadata, &mut this.metadata);
    };
    ($of_kind:ident<K $(, $other:ident)*>: $bound:path, $this:ident => $meta:expr, $meta_mut:expr) => {
        $crate::watch::resource_of_kind!(
            @impl [<K: $bound $(, $other)*>] $of_kind<K $(, $other)*>, K, $this => $meta, $meta_mut
        );
    };
    (@impl [$($parameters:tt)*] $of_kind:ty, $kind:ty, $this:ident => $meta:expr, $meta_mut:expr) => {
        impl $($parameters)* kube::Resource for $of_kind {
            type DynamicType = <$kind as kube::Resource>::DynamicType;
            type Scope = <$kind as kube::Resource>::Scope;

            fn kind(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::kind(dt)
            }

            fn group(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::group(dt)
            }

            fn version(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::version(dt)
            }

            fn plural(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                <$kind as kube::Resource>::plural(dt)
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
