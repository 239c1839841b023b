//! Which toleration covers which, allow-lists, and merging: the tables of Kubernetes' own tests
//! (k8s.io/kubernetes/pkg/util/tolerations).

use admission::Text;

use crate::plugins::toleration::{Cover, Toleration, is_superset, merged, merged_by_cover, merged_in_pairs};

/// `all`, or a key with a value behind a colon, an effect behind a slash, and seconds behind a minus.
fn toleration(text: &'static str) -> Toleration<'static> {
    let (text, seconds) =
        text.split_once('-').map_or((text, None), |(text, seconds)| (text, Some(seconds.parse().unwrap())));
    let (text, effect) = text.split_once('/').unwrap_or((text, ""));
    let (key, value) = text.split_once(':').map_or((text, None), |(key, value)| (key, Some(value)));
    let mut one = Toleration::exists(if key == "all" { "" } else { key }, effect, seconds);
    if let Some(value) = value {
        (one.operator.0, one.value.0) = ("Equal".into(), value.into());
    }
    one
}

const NAMES: [&str; 18] = [
    "all",
    "all/NoSchedule",
    "all/NoExecute",
    "foo",
    "foo:bar",
    "foo/NoSchedule",
    "foo:bar/NoSchedule",
    "foo:baz/NoSchedule",
    "faz/NoSchedule",
    "faz:baz/NoSchedule",
    "foo/PreferNoSchedule",
    "foo/NoExecute",
    "foo:bar/NoExecute",
    "foo/NoExecute-10",
    "foo/NoExecute-0",
    "foo:bar/NoExecute-10",
    "bar:x/NoSchedule",
    "baz/NoSchedule",
];

/// What each covers beside itself; `all` covers everything.
const COVERS: [(&str, &[&str]); 10] = [
    (
        "all/NoSchedule",
        &[
            "foo/NoSchedule",
            "foo:bar/NoSchedule",
            "foo:baz/NoSchedule",
            "faz/NoSchedule",
            "faz:baz/NoSchedule",
            "bar:x/NoSchedule",
            "baz/NoSchedule",
        ],
    ),
    (
        "all/NoExecute",
        &["foo/NoExecute", "foo:bar/NoExecute", "foo/NoExecute-10", "foo/NoExecute-0", "foo:bar/NoExecute-10"],
    ),
    (
        "foo",
        &[
            "foo:bar",
            "foo/NoSchedule",
            "foo:bar/NoSchedule",
            "foo:baz/NoSchedule",
            "foo/PreferNoSchedule",
            "foo/NoExecute",
            "foo:bar/NoExecute",
            "foo/NoExecute-10",
            "foo/NoExecute-0",
            "foo:bar/NoExecute-10",
        ],
    ),
    ("foo:bar", &["foo:bar/NoSchedule", "foo:bar/NoExecute", "foo:bar/NoExecute-10"]),
    ("foo/NoSchedule", &["foo:bar/NoSchedule", "foo:baz/NoSchedule"]),
    ("faz/NoSchedule", &["faz:baz/NoSchedule"]),
    ("foo/NoExecute", &["foo:bar/NoExecute", "foo/NoExecute-10", "foo/NoExecute-0", "foo:bar/NoExecute-10"]),
    ("foo:bar/NoExecute", &["foo:bar/NoExecute-10"]),
    ("foo/NoExecute-10", &["foo/NoExecute-0", "foo:bar/NoExecute-10"]),
    ("all", &[]),
];

#[test]
fn a_toleration_covers_what_the_table_says_and_the_index_agrees() {
    for wide in NAMES {
        for narrow in NAMES {
            let listed = COVERS.iter().any(|(name, covered)| *name == wide && covered.contains(&narrow));
            let expected = wide == narrow || wide == "all" || listed;
            let (one, other) = (toleration(wide), toleration(narrow));
            assert_eq!(is_superset(&one, &other), expected, "{wide} {narrow}");
            assert_eq!(Cover::of([&one]).covers(&other), expected, "{wide} {narrow}");
        }
    }
}

#[test]
fn an_allow_list_covers_each_toleration_by_one_of_its_own() {
    for (allowed, list, expected) in [
        (&["foo:bar/NoSchedule", "foo:baz/NoSchedule"][..], &["foo:bar/NoSchedule", "foo:baz/NoSchedule"][..], true),
        (&["foo:bar/NoSchedule"], &["foo:bar/NoSchedule", "foo:bar/NoSchedule"], true),
        (&["all"], &["foo:bar/NoSchedule", "faz/NoSchedule"], true),
        (&["foo:baz/NoSchedule"], &["foo:bar/NoSchedule", "foo:bar/NoSchedule"], false),
        (&["baz/NoSchedule"], &["bar:x/NoSchedule", "baz/NoSchedule"], false),
        (&["foo/NoSchedule"], &["foo:bar"], false),
        (&["foo/NoSchedule"], &[], true),
    ] {
        let (allowed, list): (Vec<_>, Vec<_>) =
            (allowed.iter().map(|t| toleration(t)).collect(), list.iter().map(|t| toleration(t)).collect());
        assert_eq!(list.iter().all(|one| Cover::of(&allowed).covers(one)), expected, "{allowed:?} {list:?}");
    }
}

fn merge(first: &[&'static str], second: &[&'static str]) -> Vec<&'static str> {
    let names: Vec<&'static str> = first.iter().chain(second).copied().collect();
    let all: Vec<Toleration<'_>> = names.iter().map(|name| toleration(name)).collect();
    let kept = merged(&all.iter().collect::<Vec<_>>());
    names.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(name, _)| name).collect()
}

#[test]
fn merged_lists_keep_their_order_and_lose_what_another_covers() {
    let (value, other, seconds) = ("bar:x/NoSchedule", "faz:baz/NoSchedule", "foo/NoExecute-10");
    let (preferred, key) = ("foo/PreferNoSchedule", "baz/NoSchedule");
    assert_eq!(merge(&[value, other, seconds], &[preferred, key]), [value, other, seconds, preferred, key]);
    assert_eq!(merge(&[value, other], &[value, other]), [value, other]);
    let narrow = ["foo:bar/NoSchedule", "foo:baz/NoSchedule"];
    assert_eq!(merge(&narrow, &["foo/NoSchedule", other]), ["foo/NoSchedule", other]);
    assert_eq!(merge(&[value, other], &["all"]), ["all"]);
    assert_eq!(merge(&["all"], &[value, other]), ["all"]);
}

#[test]
fn merging_in_linear_time_keeps_what_kubernetes_keeps() {
    // A sequence with a fixed seed; operators and values that validation refuses are among them.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for round in 0..3000 {
        let all: Vec<Toleration<'_>> = (0..next(9))
            .map(|_| {
                let pick = |list: &[&'static str], at: u64| list[usize::try_from(at).unwrap() % list.len()];
                let mut one = Toleration::exists(pick(&["", "a", "b"], next(3)), "", None);
                one.operator.0 = pick(&["Exists", "Equal", "", "Lt"], next(4)).into();
                one.value.0 = pick(&["", "x"], next(2)).into();
                one.effect.0 = pick(&["", "NoExecute", "NoSchedule"], next(3)).into();
                one.toleration_seconds = [None, Some(1), Some(2)][usize::try_from(next(3)).unwrap()];
                one
            })
            .collect();
        let all: Vec<&Toleration<'_>> = all.iter().collect();
        assert_eq!(merged_by_cover(&all), merged_in_pairs(&all), "round {round}: {all:?}");
    }
}

#[test]
fn a_toleration_is_written_without_what_is_empty() {
    let full = Toleration {
        value: Text("a\"b".into()),
        toleration_seconds: Some(30),
        ..Toleration::exists("k", "NoExecute", None)
    };
    assert_eq!(
        full.to_json(),
        r#"{"key":"k","operator":"Exists","value":"a\"b","effect":"NoExecute","tolerationSeconds":30}"#
    );
    assert_eq!(
        Toleration { toleration_seconds: Some(-1), ..Toleration::default() }.to_json(),
        r#"{"tolerationSeconds":-1}"#
    );
    assert_eq!(Toleration::default().to_json(), "{}");
}
