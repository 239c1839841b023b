//! Which annotations sets may give to pods, as the cluster's administrators say. `OpenKruise`'s format.

use std::collections::BTreeMap;

use admission::bounded::ellipsis;
use admission::format::Selector;
use admission::format::selector::LabelSelector;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// Rules, and expressions of one rule: a list of that many is a mistake.
const MOST: usize = 1000;

/// Bytes that compiled expressions may take, of which the least that is enough counts. An expression of ten characters may take a
/// megabyte.
const SIZES: [usize; 2] = [16 << 10, 1 << 20];

/// Bytes that all compiled expressions together may take.
const ALL_MAX: usize = 16 << 20;

/// Characters of what is wrong with a list, which repeats parts of it.
const ERROR_MAX: usize = 500;

/// Which annotations sets may give to pods.
#[derive(Debug, Clone, Default)]
pub enum AllowList {
    /// There is no list. Then none is allowed.
    #[default]
    Absent,
    /// The list cannot be read, and why. Then none is allowed.
    Unreadable(String),
    /// By rules, of which one is enough. They are kept compiled, although that takes a hundred times their text: compiled for each set
    /// that is checked, a list of 822 KB held the workers for seconds, and reviews of pods with them.
    Rules(Vec<AllowRule>),
}

/// Keys of annotations that some sets may give.
#[derive(Debug, Clone)]
pub struct AllowRule {
    // By the set's labels; all where absent.
    selector: Option<Selector>,
    keys: Vec<Regex>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    rules: Vec<WrittenRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenRule {
    selector: Option<LabelSelector>,
    allowed_annotation_key_exprs: Vec<String>,
}

impl AllowList {
    /// Reads the list. A misspelled key makes it unreadable: it must not allow more.
    pub fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Absent };
        let rules = serde_json::from_str::<Written>(text).map_err(|error| error.to_string()).and_then(compile);
        rules.map_or_else(|error| Self::Unreadable(ellipsis(&error, ERROR_MAX)), Self::Rules)
    }

    /// Whether a set with these labels may give an annotation of this key.
    pub fn allows(&self, labels: &BTreeMap<String, String>, key: &str) -> bool {
        let Self::Rules(rules) = self else { return false };
        let concerns = |rule: &&AllowRule| rule.selector.as_ref().is_none_or(|selector| selector.matches(labels));
        rules.iter().filter(concerns).any(|rule| rule.keys.iter().any(|expression| expression.is_match(key)))
    }
}

fn compile(written: Written) -> Result<Vec<AllowRule>, String> {
    if written.rules.len() > MOST {
        return Err(format!("more than {MOST} rules"));
    }
    let (rules, mut room) = (written.rules.into_iter().enumerate(), ALL_MAX);
    rules.map(|(index, rule)| rule_of(rule, &mut room).map_err(|error| format!("rules[{index}]: {error}"))).collect()
}

fn rule_of(rule: WrittenRule, room: &mut usize) -> Result<AllowRule, String> {
    if rule.allowed_annotation_key_exprs.len() > MOST {
        return Err(format!("more than {MOST} expressions"));
    }
    let selector = rule.selector.map(|selector| selector.compile().map_err(|error| error.to_string())).transpose()?;
    let expressions = rule.allowed_annotation_key_exprs.iter();
    let keys = expressions.map(|expression| expression_of(expression, room));
    Ok(AllowRule { selector, keys: keys.collect::<Result<_, _>>()? })
}

fn expression_of(expression: &str, room: &mut usize) -> Result<Regex, String> {
    let compile = |size: usize| RegexBuilder::new(expression).size_limit(size).build();
    let mut compiled = Err(regex::Error::CompiledTooBig(0));
    for size in SIZES {
        compiled = compile(size);
        if !matches!(compiled, Err(regex::Error::CompiledTooBig(_))) {
            let left = room.checked_sub(size);
            *room =
                left.ok_or_else(|| format!("the expressions up to {expression:?} take more than {ALL_MAX} bytes"))?;
            break;
        }
    }
    compiled.map_err(|error| format!("{expression:?} is no regular expression: {}", in_one_line(&error)))
}

/// What is wrong, without the drawing of the place: a finding is one line.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().next_back().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &str, labels: &[(&str, &str)], key: &str) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        AllowList::read(Some(list)).allows(&labels, key)
    }

    #[test]
    fn a_key_is_allowed_by_one_expression_of_one_rule_for_the_set() {
        let any = r#"{"rules":[{"allowedAnnotationKeyExprs":["^a$","key.*"]}]}"#;
        let some = r#"{"rules":[{"selector":{"matchLabels":{"app":"sidecar"}},"allowedAnnotationKeyExprs":["key"]}]}"#;
        assert!(allows(any, &[], "key1") && allows(any, &[], "my-key") && !allows(any, &[], "ab"));
        assert!(allows(some, &[("app", "sidecar")], "key1"));
        assert!(!allows(some, &[("app", "other")], "key1") && !allows(some, &[], "key1"));
        assert!(!allows(r#"{"rules":[]}"#, &[], "key1"));
        assert!(!AllowList::read(None).allows(&BTreeMap::new(), "key1"));
    }

    #[test]
    fn of_several_keys_each_is_allowed_by_itself() {
        let list = AllowList::read(Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["^a$","^b$"]}]}"#));
        let allowed = ["b", "c", "a"].map(|key| list.allows(&BTreeMap::new(), key));
        assert_eq!(allowed, [true, false, true]);
    }

    #[test]
    fn what_is_said_of_a_long_list_is_short() {
        let expression = |text: &str| serde_json::json!({"rules": [{"allowedAnnotationKeyExprs": [text]}]}).to_string();
        for list in [format!(r#"{{"{}":[]}}"#, "x".repeat(100_000)), expression(&"(".repeat(100_000))] {
            let AllowList::Unreadable(why) = AllowList::read(Some(&list)) else { panic!() };
            assert!(why.len() < 600 && why.ends_with('…'), "{}", why.len());
        }
    }

    #[test]
    fn small_expressions_that_are_large_once_compiled_allow_nothing() {
        let list = |expression: &str, count: usize| {
            let rule = serde_json::json!({"allowedAnnotationKeyExprs": vec![expression; count]});
            serde_json::json!({"rules": [rule]}).to_string()
        };
        assert!(allows(&list("^example.com/", 1000), &[], "example.com/a"));
        let large = r"^\w{10}$";
        let key = "a".repeat(10);
        assert!(allows(&list(large, 2), &[], &key) && !allows(&list(large, 17), &[], &key));
        let AllowList::Unreadable(why) = AllowList::read(Some(&list(large, 17))) else { panic!() };
        assert!(why.ends_with("take more than 16777216 bytes"), "{why}");
    }

    #[test]
    fn what_is_wrong_with_an_expression_is_one_line() {
        let AllowList::Unreadable(why) =
            AllowList::read(Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["(?=a)"]}]}"#))
        else {
            panic!()
        };
        assert_eq!(
            why,
            "rules[0]: \"(?=a)\" is no regular expression: look-around, including look-ahead and look-behind, is not supported"
        );
    }

    #[test]
    fn a_list_with_a_slip_allows_nothing() {
        for list in [
            "",
            "[]",
            r#"{"ruls":[{"allowedAnnotationKeyExprs":["key"]}]}"#,
            r#"{"rules":[{"allowedAnnotationKeyExpr":["key"]}]}"#,
            r#"{"rules":[{"selectors":{"matchLabels":{"a":"b"}},"allowedAnnotationKeyExprs":["key"]}]}"#,
            r#"{"rules":[{"allowedAnnotationKeyExprs":["key","("]}]}"#,
            r#"{"rules":[{"selector":{"matchExpressions":[{"key":"a","operator":"Like"}]},"allowedAnnotationKeyExprs":["key"]}]}"#,
        ] {
            assert!(matches!(AllowList::read(Some(list)), AllowList::Unreadable(_)), "{list}");
            assert!(!allows(list, &[], "key1"), "{list}");
        }
    }
}
