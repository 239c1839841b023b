use std::collections::BTreeMap;

use admission::format::selector::Requirement;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::clause::HAS_LABELS;
use super::*;
use crate::sidecarset::compiled::{NAMESPACE_NAME_LABEL, NamespaceScope};

const LABELS: &str = "object.metadata.labels";

fn set(spec: Value) -> CompiledSet {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "c", "image": "i"}]);
    CompiledSet::compile(&serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap()).unwrap()
}

fn expression(specs: &[Value]) -> Option<String> {
    let sets: Vec<CompiledSet> = specs.iter().cloned().map(set).collect();
    NarrowingRule::of(&sets).expression()
}

type Labels = BTreeMap<String, String>;

/// Evaluates the CEL that is written here, as the API server does: what is read without being there fails.
struct Evaluator<'a> {
    rest: &'a str,
    labels: Option<&'a Labels>,
    namespace: &'a str,
}

impl Evaluator<'_> {
    fn evaluate(expression: &str, labels: Option<&Labels>, namespace: &str) -> Result<bool, String> {
        let mut evaluator = Evaluator { rest: expression, labels, namespace };
        let value = evaluator.any()?;
        evaluator.space();
        if evaluator.rest.is_empty() { Ok(value) } else { Err(format!("left over: {:?}", evaluator.rest)) }
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, token: &str) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn needs(&mut self, token: &str) {
        assert!(self.takes(token), "{token:?} expected at {:?}", self.rest);
    }

    /// `||`: one side that is true is enough, also beside one that fails.
    fn any(&mut self) -> Result<bool, String> {
        let mut value = self.all();
        while self.takes("||") {
            let other = self.all();
            value = if value == Ok(true) || other == Ok(true) { Ok(true) } else { value.and(other) };
        }
        value
    }

    /// `&&`: one side that is false is enough, also beside one that fails.
    fn all(&mut self) -> Result<bool, String> {
        let mut value = self.one();
        while self.takes("&&") {
            let other = self.one();
            value = if value == Ok(false) || other == Ok(false) { Ok(false) } else { value.and(other) };
        }
        value
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.takes("!") {
            return self.one().map(|value| !value);
        }
        if self.takes("(") {
            let value = self.any();
            self.needs(")");
            return value;
        }
        if self.takes("false") {
            return Ok(false);
        }
        if self.takes(HAS_LABELS) {
            return Ok(self.labels.is_some());
        }
        let mut left = self.text();
        while self.takes("+") {
            let right = self.text();
            left = left.and_then(|left| Ok(left + &right?));
        }
        if self.takes("==") {
            let right = self.text()?;
            return left.map(|left| left == right);
        }
        self.needs("in");
        if self.takes(LABELS) {
            let labels = self.labels.ok_or("no labels")?;
            return left.map(|key| labels.contains_key(&key));
        }
        self.needs("[");
        let mut found = false;
        loop {
            let value = self.text()?;
            found |= left.as_ref() == Ok(&value);
            if !self.takes(",") {
                break;
            }
        }
        self.needs("]");
        left.map(|_| found)
    }

    fn text(&mut self) -> Result<String, String> {
        if self.takes("request.namespace") {
            return Ok(self.namespace.to_owned());
        }
        if self.takes(LABELS) {
            self.needs("[");
            let key = self.text()?;
            self.needs("]");
            let labels = self.labels.ok_or("no labels")?;
            return labels.get(&key).cloned().ok_or_else(|| format!("no label {key}"));
        }
        self.needs("'");
        let (text, rest) = self.rest.split_once('\'').unwrap();
        self.rest = rest;
        Ok(text.to_owned())
    }
}

fn reaches(set: &CompiledSet, namespace: &str, labels: &Labels) -> bool {
    match &set.scope {
        NamespaceScope::All => true,
        NamespaceScope::Named(name) => name == namespace,
        NamespaceScope::Selected { selector, .. } => selector.matches(labels),
    }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned)
}

/// A selector of terms on these keys.
fn selector(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let term = (
        prop::sample::select(keys),
        prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]),
        vec(word(), 1..3),
    )
        .prop_map(|(key, operator, values)| {
            let values = if operator.ends_with("In") { values } else { Vec::new() };
            json!({"key": key, "operator": operator, "values": values})
        });
    vec(term, 1..4).prop_map(|terms| json!({"matchExpressions": terms}))
}

fn spec() -> impl Strategy<Value = Value> {
    let pods = selector(&["app", "example.com/tier"]);
    let namespaces = prop_oneof![
        Just(json!({})),
        word().prop_map(|name| json!({"namespace": name})),
        selector(&[NAMESPACE_NAME_LABEL, "env"]).prop_map(|selector| json!({"namespaceSelector": selector})),
    ];
    (pods, namespaces).prop_map(|(pods, mut spec)| {
        spec["selector"] = pods;
        spec
    })
}

fn labels() -> impl Strategy<Value = Option<Labels>> {
    let key = prop::sample::select(vec!["app", "example.com/tier", "other"]).prop_map(str::to_owned);
    prop::option::of(btree_map(key, word(), 0..3))
}

proptest! {
    #[test]
    fn a_pod_that_a_set_matches_is_asked_about(
        specs in vec(spec(), 0..12), labels in labels(), namespace in word(), env in prop::option::of(word()),
    ) {
        let sets: Vec<CompiledSet> = specs.into_iter().map(set).collect();
        let mut of_namespace = Labels::from([(NAMESPACE_NAME_LABEL.to_owned(), namespace.clone())]);
        of_namespace.extend(env.map(|value| ("env".to_owned(), value)));
        let own = labels.clone().unwrap_or_default();
        let matched = sets.iter().any(|set| set.selector.matches(&own) && reaches(set, &namespace, &of_namespace));
        let asked = NarrowingRule::of(&sets).expression().map_or(Ok(true), |text| Evaluator::evaluate(&text, labels.as_ref(), &namespace));
        // An expression that fails would refuse the pod.
        let asked = asked.unwrap();
        prop_assert!(asked || !matched);
        let is_exact = |set: &CompiledSet| match &set.scope {
            NamespaceScope::Selected { selector, by_name_alone } => {
                *by_name_alone && !selector.requirements().iter().any(|term| matches!(term, Requirement::DoesNotExist(_)))
            }
            NamespaceScope::All | NamespaceScope::Named(_) => true,
        };
        prop_assert!(matched || !asked || !sets.iter().all(is_exact));
    }

    #[test]
    fn the_union_and_the_common_part_of_rules_are_those_of_their_pods(
        ours in vec(spec(), 0..6), theirs in vec(spec(), 0..6), labels in labels(), namespace in word(),
    ) {
        let rule = |specs: Vec<Value>| NarrowingRule::of(&specs.into_iter().map(set).collect::<Vec<_>>());
        let (ours, theirs) = (rule(ours), rule(theirs));
        let asks = |rule: &NarrowingRule| {
            rule.expression().is_none_or(|text| Evaluator::evaluate(&text, labels.as_ref(), &namespace).unwrap())
        };
        let (all, both) = (ours.or(&theirs), ours.and(&theirs));
        prop_assert_eq!(asks(&all), asks(&ours) || asks(&theirs));
        prop_assert!(!asks(&both) || asks(&ours) && asks(&theirs));
        prop_assert!(all.covers(&ours) && all.covers(&theirs) && ours.covers(&both) && theirs.covers(&both));
        prop_assert!(!ours.covers(&theirs) || asks(&ours) || !asks(&theirs));
    }

    #[test]
    fn what_is_written_is_read_back(specs in vec(spec(), 0..12)) {
        let sets: Vec<CompiledSet> = specs.into_iter().map(set).collect();
        let rule = NarrowingRule::of(&sets);
        prop_assert_eq!(NarrowingRule::read(rule.expression().as_deref()), Some(rule));
    }

    #[test]
    fn no_step_leaves_out_what_is_wanted(
        stored in vec(spec(), 0..4), foreign in any::<bool>(), wanted in vec(spec(), 0..4), settled in any::<bool>(),
    ) {
        let rule = |specs: Vec<Value>| NarrowingRule::of(&specs.into_iter().map(set).collect::<Vec<_>>());
        let (stored, wanted) = (rule(stored), rule(wanted));
        let mut stored = vec![Some(stored.clone()), (!foreign).then_some(stored)];
        for settled in [settled, settled, true, true] {
            if let Some(next) = step(&stored, &wanted, settled) {
                prop_assert!(next.covers(&wanted));
                stored = vec![Some(next.clone()), Some(next)];
            }
        }
        prop_assert_eq!(&stored[0], &Some(wanted.clone()));
        prop_assert_eq!(step(&stored, &wanted, true), None);
    }
}

#[test]
fn expressions_are_as_recorded() {
    let app = json!({"matchLabels": {"app": "web"}});
    let cases = [
        (vec![], Some("false")),
        (
            vec![json!({"selector": app})],
            Some(
                "(has(object.metadata.labels) && 'app' in object.metadata.labels && object.metadata.labels['app'] == 'web')",
            ),
        ),
        (
            vec![
                json!({"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b", "a"]}]}, "namespace": "prod"}),
            ],
            Some(
                "(!(has(object.metadata.labels) && 'app' in object.metadata.labels && \
                 object.metadata.labels['app'] in ['a', 'b']) && request.namespace == 'prod')",
            ),
        ),
        (
            vec![json!({"selector": {}, "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["a"]},
                {"key": "env", "operator": "Exists"}]}})],
            Some("(!(request.namespace == 'a'))"),
        ),
        (
            vec![
                json!({"selector": {}, "namespaceSelector": {"matchLabels": {"env": "prod"}}}),
                json!({"selector": app}),
            ],
            None,
        ),
    ];
    for (specs, expected) in cases {
        assert_eq!(expression(&specs).as_deref(), expected, "{specs:?}");
    }
    let two =
        expression(&[json!({"selector": app}), json!({"selector": app}), json!({"selector": app, "namespace": "a"})]);
    assert_eq!(two.unwrap().lines().count(), 2, "equal clauses are written once");
}

#[test]
fn clauses_that_differ_only_in_values_are_one_with_a_list() {
    let app = |value: &str| json!({"selector": {"matchLabels": {"app": value}}});
    let of = |selector: Value, namespace: &str| json!({"selector": selector, "namespace": namespace});
    let labels = |app: &str, tier: &str| json!({"matchLabels": {"app": app, "tier": tier}});
    let has = "has(object.metadata.labels) && 'app' in object.metadata.labels";
    let cases = [
        (vec![app("b"), app("a"), app("b")], format!("({has} && object.metadata.labels['app'] in ['a', 'b'])")),
        (
            vec![of(labels("a", "x"), "shop"), of(labels("b", "x"), "shop")],
            format!(
                "({has} && 'tier' in object.metadata.labels && object.metadata.labels['tier'] == 'x' && \
                 request.namespace == 'shop' && object.metadata.labels['app'] in ['a', 'b'])"
            ),
        ),
        (
            vec![of(labels("a", "x"), "shop"), of(labels("b", "x"), "bank")],
            format!(
                "({has} && 'tier' in object.metadata.labels && object.metadata.labels['tier'] == 'x' && \
                 object.metadata.labels['app'] + '/' + request.namespace in ['a/shop', 'b/bank'])"
            ),
        ),
        (
            // All combinations of two lists could be far too many: the longer one alone is written out.
            vec![json!({"selector": {"matchExpressions": [
                {"key": "app", "operator": "In", "values": ["a", "b", "c"]},
                {"key": "tier", "operator": "In", "values": ["x", "y"]}]}})],
            format!(
                "({has} && 'tier' in object.metadata.labels && object.metadata.labels['tier'] in ['x', 'y'] && \
                 object.metadata.labels['app'] in ['a', 'b', 'c'])"
            ),
        ),
        (
            vec![json!({"selector": {"matchExpressions": [
                {"key": "app", "operator": "In", "values": ["a"]}, {"key": "app", "operator": "In", "values": ["b"]}]}})],
            "false".to_owned(),
        ),
    ];
    for (specs, expected) in cases {
        assert_eq!(expression(&specs).as_ref(), Some(&expected), "{specs:?}");
    }
}

#[test]
fn many_sets_of_one_shape_are_one_clause_and_stay_within_the_limit() {
    let app = |index: usize| json!({"matchLabels": {"app": format!("set-{index}")}});
    let specs: [Vec<Value>; 2] = [
        (0..1_500).map(|index| json!({"selector": app(index)})).collect(),
        (0..1_000).map(|index| json!({"selector": app(index), "namespace": format!("team-{}", index % 70)})).collect(),
    ];
    for specs in specs {
        let text = expression(&specs).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(text.len() < specs.len() * 20, "{} characters", text.len());
        let evaluate = |app: &str, namespace: &str| {
            Evaluator::evaluate(&text, Some(&Labels::from([("app".to_owned(), app.to_owned())])), namespace).unwrap()
        };
        assert!(evaluate("set-71", "team-1") && !evaluate("set", "team-1"));
    }
}

#[test]
fn beyond_what_cel_takes_every_pod_is_asked_about() {
    let labels = |count: usize, filler: &str| {
        let spec = |index: usize| json!({"selector": {"matchLabels": {"app": format!("{index:04}{filler}")}}});
        expression(&(0..count).map(spec).collect::<Vec<_>>())
    };
    let filler = "v".repeat(56);
    // Each further value takes its characters, two quotes, a comma and a space.
    let one = filler.len() + 4 + 4;
    let most = (MAX_CHARACTERS - labels(2, &filler).unwrap().len()) / one + 2;
    assert!(labels(most, &filler).is_some_and(|text| text.len() + one > MAX_CHARACTERS));
    assert_eq!(labels(most + 1, &filler), None);
    // Sets of as many shapes, which cannot be one.
    let shapes = |count: usize| {
        let spec = |index: usize| json!({"selector": {"matchExpressions": [{"key": format!("key-{index:04}"), "operator": "Exists"}]}});
        expression(&(0..count).map(spec).collect::<Vec<_>>())
    };
    assert_eq!(shapes(1_000).unwrap().lines().count(), 1_000);
    assert_eq!(shapes(2_000), None);
}

#[test]
fn an_expression_of_another_form_is_replaced_by_the_wide_rule_first() {
    assert_eq!(NarrowingRule::read(Some("request.namespace != 'a'")), None);
    let wanted = NarrowingRule::nothing();
    assert_eq!(step(&[None], &wanted, true), Some(NarrowingRule::Wide));
    assert_eq!(step(&[Some(NarrowingRule::Wide)], &wanted, false), None);
    assert_eq!(step(&[Some(NarrowingRule::Wide)], &wanted, true), Some(wanted));
}

/// What the version before wrote, and what a stage or a person writes: each clause is kept as it is.
#[test]
fn clauses_of_another_form_are_equal_only_to_themselves() {
    let texts = [
        "(request.namespace == 'shop' && has(object.metadata.labels) && 'app' in object.metadata.labels)",
        "(object.metadata.labels['app'] in ['b', 'a'])",
        "(object.metadata.labels['app'] in ['a/b'])",
        "(object.metadata.labels['app'] == 'it\\'s')",
        "(a == 'b' && !(c && d))",
        "()",
    ];
    for text in texts {
        let rule = NarrowingRule::read(Some(text)).unwrap();
        assert_eq!(rule.expression().as_deref(), Some(text));
        assert!(!rule.covers(&NarrowingRule::of(&[set(json!({"selector": {"matchLabels": {"app": "a"}}}))])));
    }
    let both = texts.join(OR);
    let read = NarrowingRule::read(Some(&both)).unwrap();
    assert_eq!(read.expression().unwrap().lines().count(), texts.len());
}
