//! Objects that users may store while no webhook looks, or that none would refuse: keys, sizes, depths and types of any kind. The same
//! seed gives the same objects.

use serde_json::{Map, Value, json};

/// A flag that turns the kind of these `CronJob`s on.
pub const CRON_JOBS: &str = "--enable-kinds=cronjob";
/// Bytes of annotations that the API server stores at most.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
/// Replaced by a template as text, as it may be deeper than a value that we could decode.
const TEMPLATE: &str = "the template";

/// Texts that mean something somewhere: names of fields, other types as text, characters that end a text.
const TEXTS: [&str; 24] = [
    "",
    " ",
    "a",
    "0",
    "null",
    "true",
    "{}",
    "[]",
    "{\"minute\":\"5\"}",
    "\"@every 5m\"",
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "schedule",
    "items",
    "__proto__",
    "a/b~c",
    "\u{7f}",
    "\u{2028}",
    "\u{202e}gnp.exe",
    "\\u0000\n\t\"",
    "\u{1f600}\u{e9}",
];

/// Schedules: such as are fine, such as one version cannot say, and such as are none.
const SCHEDULES: [&str; 18] = [
    "0 0 1 1 *",
    "* * * * *",
    "*/5 0-6 1,2 jan-dec sun",
    "@every 5h",
    "@yearly",
    "@hourly",
    " 0 0  1 1 * ",
    "0\t0 1 1 *",
    "TZ=Europe/Berlin 0 0 1 1 *",
    "@every 1ns",
    "@every -5m",
    "? ? ? ? ?",
    "",
    "no schedule",
    "{\"minute\":\"5\"}",
    "\"0 0 1 1 *\"",
    "\u{202e}* * * * *",
    "99999999999999999999 * * * *",
];

/// Annotations in which conversion remembers a schedule, and one that it does not know.
const MEMORIES: [&str; 3] =
    ["batch.outrider.dev/v1-schedule", "batch.outrider.dev/v2-schedule", "batch.outrider.dev/v3-schedule"];

/// A sequence with a fixed seed.
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one_of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }

    /// Mostly short, seldom of up to so many bytes.
    fn text(&mut self, most: usize) -> String {
        let text = self.one_of(&TEXTS);
        if self.once_in(8) { text.repeat(1 + self.below(most.max(1)) / text.len().max(1)) } else { text.to_owned() }
    }

    fn value(&mut self, depth: usize) -> Value {
        let few = self.below(4);
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => Value::Null,
            1 => true.into(),
            2 => [json!(0), json!(-1), json!(i64::MAX), json!(u64::MAX)][few].clone(),
            3 => json!([0.5, -1e300, 1e-300, 1e15][few]),
            4 | 5 => self.text(2_000).into(),
            6 | 7 => (0..few).map(|_| self.value(depth - 1)).collect(),
            _ => self.object(few, depth - 1),
        }
    }

    fn object(&mut self, fields: usize, depth: usize) -> Value {
        let fields: Map<_, _> = (0..fields).map(|_| (self.text(300), self.value(depth))).collect();
        fields.into()
    }

    /// A template as JSON.
    fn template(&mut self) -> String {
        let nested = |open: &str, close: &str, depth: usize| {
            format!(r#"{{"a":{}0{}}}"#, open.repeat(depth), close.repeat(depth))
        };
        match self.below(12) {
            0 => nested("[", "]", 1 + self.below(4_000)),
            1 => nested(r#"{"a":["#, "]}", 1 + self.below(2_000)),
            2 => {
                let count = 1 + self.below(20_000);
                format!(r#"{{"x":[{}]}}"#, vec![r#"{"":0}"#; count].join(","))
            }
            3 => json!({ "x": self.text(300_000) }).to_string(),
            4 => "{}".to_owned(),
            _ => {
                let mut template = self.object(6, 5);
                // The schema wants these to be objects.
                for typed in ["metadata", "spec"] {
                    if template.get(typed).is_some_and(|value| !value.is_object()) {
                        template[typed] = self.object(3, 4);
                    }
                }
                template.to_string()
            }
        }
    }

    fn memory(&mut self) -> String {
        match self.below(5) {
            0 => self.one_of(&SCHEDULES).to_owned(),
            1 => self.value(3).to_string(),
            2 => format!(r#"{{"minute":{}{}}}"#, "[".repeat(3_000), "]".repeat(3_000)),
            3 => json!({ "minute": self.value(1), "hour": self.text(100), "second": "*" }).to_string(),
            _ => self.text(60_000),
        }
    }

    fn annotations(&mut self) -> Value {
        let mut annotations = Map::new();
        for key in MEMORIES {
            if self.once_in(2) {
                annotations.insert(key.to_owned(), self.memory().into());
            }
        }
        if self.once_in(6) {
            let count = self.below(2_000);
            annotations.extend((0..count).map(|n| (format!("{n:x}"), self.text(10).into())));
        }
        if self.once_in(4) {
            let bytes = |(key, value): (&String, &Value)| key.len() + value.as_str().unwrap().len();
            let left = ANNOTATIONS_MAX_BYTES.saturating_sub(annotations.iter().map(bytes).sum::<usize>() + 1);
            // Up to the last byte.
            annotations.insert("a".to_owned(), "x".repeat(left - self.below(left.clamp(1, 64))).into());
        }
        annotations.into()
    }

    /// A `CronJob` that starts nothing.
    fn cronjob(&mut self, name: &str) -> String {
        let schedule = match self.below(6) {
            0 => self.one_of(&SCHEDULES).repeat(1 + self.below(30)).chars().take(500).collect(),
            1 => self.text(500).chars().take(500).collect(),
            _ => self.one_of(&SCHEDULES).to_owned(),
        };
        let spec = json!({"schedule": schedule, "suspend": true, "jobTemplate": TEMPLATE});
        let mut object =
            json!({"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec});
        let annotations = self.annotations();
        if !annotations.as_object().unwrap().is_empty() {
            object["metadata"]["annotations"] = annotations;
        }
        object.to_string().replacen(&json!(TEMPLATE).to_string(), &self.template(), 1)
    }
}

/// So many `CronJob`s by name, as JSON.
pub fn cronjobs(seed: u64, count: usize) -> Vec<(String, String)> {
    let mut random = Random(seed);
    let named = |number: usize| {
        let name = format!("hostile-{number:03}");
        let object = random.cronjob(&name);
        (name, object)
    };
    (0..count).map(named).collect()
}

/// `CronJob`s whose templates are empty maps: 1.2 MB each, and up to a hundred times as much as values.
pub fn large_cronjobs() -> Vec<String> {
    let maps = vec![r#"{"":0}"#; 150_000].join(",");
    let large = |number: usize| {
        let spec = json!({"schedule": "@every 5h", "suspend": true, "jobTemplate": TEMPLATE});
        let object = json!({
            "apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "metadata": {"name": format!("large-{number}")}, "spec": spec,
        });
        let template = format!(r#"{{"x":[{maps}],"spec":{{"template":{{"spec":{{}}}}}}}}"#);
        object.to_string().replacen(&json!(TEMPLATE).to_string(), &template, 1)
    };
    (0..5).map(large).collect()
}

/// `SidecarSet`s that a webhook would refuse, for pods that are never created.
pub fn sets() -> Vec<Value> {
    let set = |name: &str, spec: Value| json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": spec});
    let selector = json!({"matchLabels": {"app": "hostile"}});
    let containers =
        |count: usize| -> Vec<Value> { (0..count).map(|n| json!({"name": format!("c{n}"), "image": "i"})).collect() };
    let mut deep = json!(0);
    for _ in 0..60 {
        deep = json!([deep]);
    }
    let unreadable = json!({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]});
    vec![
        set("hostile-many", json!({"selector": selector, "containers": containers(5_000)})),
        set("hostile-deep", json!({"selector": selector, "containers": [{"name": "c", "image": "i", "x": deep}]})),
        set("hostile-selector", json!({"selector": unreadable, "containers": containers(1)})),
        set(
            "hostile-names",
            json!({"selector": selector, "containers": [{"name": "x".repeat(300_000), "image": "i"}]}),
        ),
        set(
            "hostile-maps",
            json!({"selector": selector, "containers": [{"name": "c", "image": "i", "x": vec![json!({"": 0}); 150_000]}]}),
        ),
        set("hostile-everything", json!({"selector": {}, "containers": []})),
    ]
}
