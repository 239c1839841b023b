//! A range in the form that decides, and what makes one wrong: the rules of `LimitRange` (`ValidateLimitRange` of
//! k8s.io/kubernetes/pkg/apis/core/validation), and its defaults (`SetDefaults_LimitRangeItem` of k8s.io/kubernetes/pkg/apis/core/v1).

use std::collections::{BTreeMap, BTreeSet};

use admission::field::{Error, ErrorList, Path};
use admission::format::selector::Selector;
use admission::format::{LabelSelector, Quantity};

use super::api::{ClusterLimitRange, LimitSpec, LimitType, TYPES, WrittenAmounts};
use super::bounds::{Bounds, MAX_MILLI_VALUE};
use crate::plugins::amounts::Amounts;
use crate::resource_name;

/// What the limits of one type may name: each resource costs every container of every pod.
pub const MAX_RESOURCES: u16 = 64;
/// What a claim asks for.
const STORAGE: &str = "storage";

/// A range that can be used.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CompiledRange {
    /// Name of the `ClusterLimitRange`, for messages.
    pub name: String,
    /// The namespaces; all where there is none.
    pub namespaces: Option<Selector>,
    /// Limits of containers that have none.
    pub limits: Amounts,
    /// Requests of containers that have none.
    pub requests: Amounts,
    bounds: Vec<(LimitType, Bounds)>,
}

impl CompiledRange {
    /// Makes the form that decides.
    ///
    /// # Errors
    /// Everything that is wrong, with its field.
    pub fn compile(object: &ClusterLimitRange) -> Result<Self, ErrorList> {
        let (path, mut errors) = (Path::new("spec"), ErrorList::default());
        let mut range = Self { name: object.metadata.name.clone().unwrap_or_default(), ..Self::default() };
        if let Some(selector) = &object.spec.namespace_selector {
            range.namespaces = selecting(selector, &path.child("namespaceSelector"), &mut errors);
        }
        let (limits, mut known) = (path.child("limits"), BTreeSet::new());
        for (index, limit) in object.spec.limits.iter().enumerate().take(TYPES.len() + 1) {
            let path = limits.index(index);
            let Some(type_) = LimitType::named(&limit.type_) else {
                errors.push(Error::not_supported(&path.child("type"), limit.type_.as_str(), &TYPES));
                continue;
            };
            if !known.insert(type_) {
                errors.push(Error::duplicate(&path.child("type"), limit.type_.as_str()));
            }
            range.add(type_, CompiledLimit::read(type_, limit, &path, &mut errors));
        }
        if object.spec.limits.len() > TYPES.len() {
            errors.push(Error::too_many(&limits, object.spec.limits.len(), TYPES.len()));
        }
        errors.into_result().map(|()| range)
    }

    fn add(&mut self, type_: LimitType, item: CompiledLimit) {
        let CompiledLimit { min, max, ratio, default, default_request } = item;
        if type_ == LimitType::Container {
            (self.limits, self.requests) = (default, default_request);
        }
        let bounds = Bounds { min, max, ratio };
        if !bounds.is_empty() {
            self.bounds.push((type_, bounds));
        }
    }

    /// Whether it fills anything in.
    pub fn fills(&self) -> bool {
        !self.limits.is_empty() || !self.requests.is_empty()
    }

    /// What it bounds, by type.
    pub fn bounds(&self) -> &[(LimitType, Bounds)] {
        &self.bounds
    }

    /// Whether it bounds what pods ask for.
    pub fn bounds_pods(&self) -> bool {
        self.bounds.iter().any(|(type_, _)| *type_ != LimitType::PersistentVolumeClaim)
    }

    /// Whether it bounds what claims ask for.
    pub fn bounds_claims(&self) -> bool {
        self.bounds.iter().any(|(type_, _)| *type_ == LimitType::PersistentVolumeClaim)
    }
}

/// A selector without faults; none for one that selects everything.
pub fn selecting(selector: &LabelSelector, path: &Path, errors: &mut ErrorList) -> Option<Selector> {
    let before = errors.len();
    selector.validate(path, errors);
    let compiled = if errors.len() > before { None } else { selector.compile().ok() };
    compiled.filter(|selector| !selector.is_everything())
}

/// The limits of one type, as they are written.
#[derive(Default)]
struct CompiledLimit {
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
    default: Amounts,
    default_request: Amounts,
}

impl CompiledLimit {
    fn read(type_: LimitType, limit: &LimitSpec, path: &Path, errors: &mut ErrorList) -> Self {
        let mut item = Self::default();
        let lists = [
            ("max", &limit.max, &mut item.max),
            ("min", &limit.min, &mut item.min),
            ("default", &limit.default, &mut item.default),
            ("defaultRequest", &limit.default_request, &mut item.default_request),
            ("maxLimitRequestRatio", &limit.max_limit_request_ratio, &mut item.ratio),
        ];
        for (field, written, read) in lists {
            let path = path.child(field);
            if type_ == LimitType::Pod && field.starts_with("default") && !written.is_empty() {
                errors.push(Error::forbidden(&path, "may not be specified when `type` is 'Pod'"));
                continue;
            }
            *read = amounts(type_, written, &path, field == "maxLimitRequestRatio", errors);
        }
        let is_bounded = |list: &WrittenAmounts| list.contains_key(STORAGE);
        if type_ == LimitType::PersistentVolumeClaim && !is_bounded(&limit.min) && !is_bounded(&limit.max) {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(Error::required(&path.child("limits"), detail));
        }
        // What is filled in repeats what was written, and its faults would repeat theirs.
        item.compare_orders(path, errors);
        if type_ == LimitType::Container {
            item.fill();
        }
        item.compare_others(path, errors);
        item
    }

    /// `SetDefaults_LimitRangeItem`.
    fn fill(&mut self) {
        let Self { min, max, default, default_request, .. } = self;
        for (name, amount) in &*max {
            default.entry(name.clone()).or_insert_with(|| amount.clone());
        }
        for (name, amount) in default.iter().chain(&*min) {
            default_request.entry(name.clone()).or_insert_with(|| amount.clone());
        }
    }

    const fn lists(&self) -> [&Amounts; 5] {
        [&self.min, &self.max, &self.default, &self.default_request, &self.ratio]
    }

    /// Amounts that are greater than others that bound them.
    fn compare_orders(&self, path: &Path, errors: &mut ErrorList) {
        let names: BTreeSet<&String> = self.lists().into_iter().flat_map(BTreeMap::keys).collect();
        for name in names {
            let [min, max, default, request, _] = self.lists().map(|list| list.get(name));
            let orders = [
                ("min", min, max, ["min", "max"], ShownAmount::Low),
                ("defaultRequest", min, request, ["min", "default request"], ShownAmount::High),
                ("defaultRequest", request, max, ["default request", "max"], ShownAmount::Low),
                ("defaultRequest", request, default, ["default request", "default limit"], ShownAmount::Low),
                ("default", min, default, ["min", "default"], ShownAmount::Low),
                ("default", default, max, ["default", "max"], ShownAmount::High),
            ];
            for (field, low, high, [first, second], at) in orders {
                if let (Some(low), Some(high)) = (low, high)
                    && low > high
                {
                    let detail = format!("{first} value {low} is greater than {second} value {high}");
                    let at_fault = match at {
                        ShownAmount::Low => low,
                        ShownAmount::High => high,
                    };
                    errors.push(Error::invalid(&path.child(field).key(name.as_str()), at_fault, detail));
                }
            }
        }
    }

    /// What else contradicts each other.
    fn compare_others(&self, path: &Path, errors: &mut ErrorList) {
        let names: BTreeSet<&String> = self.lists().into_iter().flat_map(BTreeMap::keys).collect();
        for name in names {
            let [min, max, default, request, ratio] = self.lists().map(|list| list.get(name));
            if let Some(ratio) = ratio {
                let path = path.child("maxLimitRequestRatio").key(name.as_str());
                errors.extend(wrong_ratio(ratio, min, max).map(|detail| Error::invalid(&path, ratio, detail)));
            }
            if let (Some(default), Some(request)) = (default, request)
                && !resource_name::may_overcommit(name)
                && default != request
            {
                let detail = format!("default value {default} must equal to defaultRequest value {request} in {name}");
                errors.push(Error::invalid(&path.child("defaultRequest").key(name.as_str()), request, detail));
            }
        }
    }
}

/// Which of two amounts a message shows.
#[derive(Clone, Copy)]
enum ShownAmount {
    Low,
    High,
}

/// What is wrong with a ratio: it is less than 1, or more than the bounds make possible.
#[allow(clippy::cast_precision_loss, reason = "as the API server divides")]
fn wrong_ratio(ratio: &Quantity, min: Option<&Quantity>, max: Option<&Quantity>) -> Option<String> {
    if *ratio < Quantity::from(1) {
        return Some(format!("ratio {ratio} is less than 1"));
    }
    let (min, max) = (min?, max?);
    let all = [ratio, min, max];
    let [allowed, least, most] = if all.iter().all(|one| one.value() < MAX_MILLI_VALUE) {
        all.map(|one| one.milli_value() as f64)
    } else {
        [ratio.value() as f64 * 1000.0, min.value() as f64, max.value() as f64]
    };
    let possible = most / least;
    (allowed / 1000.0 > possible).then(|| format!("ratio {ratio} is greater than max/min = {possible:.6}"))
}

/// The amounts that can be read; the others are faults.
fn amounts(type_: LimitType, written: &WrittenAmounts, path: &Path, is_ratio: bool, errors: &mut ErrorList) -> Amounts {
    let mut found = Amounts::new();
    if written.len() > usize::from(MAX_RESOURCES) {
        errors.push(Error::too_many(path, written.len(), usize::from(MAX_RESOURCES)));
        return found;
    }
    for (name, amount) in written {
        let path = path.key(name.as_str());
        if type_ == LimitType::PersistentVolumeClaim {
            if name != STORAGE {
                errors.push(Error::not_supported(&path, name.as_str(), &[STORAGE]));
            }
        } else {
            let faults = resource_name::faults(name);
            errors.extend(faults.into_iter().map(|fault| Error::invalid(&path, name.as_str(), fault)));
        }
        match amount.0.parse::<Quantity>() {
            Ok(mut quantity) => {
                quantity.round_up_to_milli();
                let faults = if is_ratio { Vec::new() } else { resource_name::amount_faults(name, &quantity) };
                errors.extend(faults.into_iter().map(|fault| Error::invalid(&path, &quantity, fault)));
                found.insert(name.clone(), quantity);
            }
            Err(error) => errors.push(Error::invalid(&path, amount.0.as_str(), error.to_string())),
        }
    }
    found
}
