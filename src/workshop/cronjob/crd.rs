//! The `CustomResourceDefinition`, written from code so that it cannot lag behind the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionVersion, JSONSchemaProps, WebhookClientConfig, WebhookConversion,
};

use super::api::{CronJobSpec, VERSION};
use super::v2;
use super::vocabulary as words;
use crate::crd::Definition;
use crate::crd::schema::{
    atomic_list, column, conditions, flag, int32, int64, not_negative, object, open, requiring, root, short_text, text,
    text_map, time, word,
};
use crate::workshop::object as kind_object;

#[cfg(test)]
mod tests;

/// The definition of the resource `cronjobs`. `converter` is where the API server finds this process, at the path `/convert`.
pub fn cronjob(converter: &WebhookClientConfig) -> CustomResourceDefinition {
    let mut crd = definition(VERSION, one_string(), vec![schedule_column()]).into_crd();
    let second = definition(v2::VERSION, five_fields(), field_columns()).into_crd();
    let not_stored = |version| CustomResourceDefinitionVersion { storage: false, ..version };
    crd.spec.versions.extend(second.spec.versions.into_iter().map(not_stored));
    crd.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(converter.clone()),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    });
    crd
}

fn definition(
    version: &'static str,
    schedule: JSONSchemaProps,
    mut columns: Vec<CustomResourceColumnDefinition>,
) -> Definition {
    columns.extend(common_columns());
    let schema = root("CronJob starts a Job for every time of its schedule.", spec(schedule), status());
    Definition { version, columns, ..kind_object::definition::<CronJobSpec>(requiring(&["spec"], schema)) }
}

fn schedule_column() -> CustomResourceColumnDefinition {
    column("Schedule", "string", ".spec.schedule", "When Jobs start.")
}

fn field_columns() -> Vec<CustomResourceColumnDefinition> {
    let columns = [("Minute", "minute"), ("Hour", "hour"), ("Day", "dayOfMonth"), ("Month", "month")];
    let columns = columns.into_iter().chain([("Weekday", "dayOfWeek")]);
    columns
        .map(|(name, field)| column(name, "string", &format!(".spec.schedule.{field}"), "Part of the schedule."))
        .collect()
}

fn common_columns() -> [CustomResourceColumnDefinition; 5] {
    [
        column("Suspend", "boolean", ".spec.suspend", "Whether no further Job starts."),
        column("Active", "string", ".status.active[*].name", "Jobs that have not ended."),
        column("Last Schedule", "date", ".status.lastScheduleTime", "Time since the newest run was due."),
        // A column of type date would count the time that has passed, and this one lies ahead.
        column("Next Schedule", "string", ".status.nextScheduleTime", "When the next run is due."),
        column("Age", "date", ".metadata.creationTimestamp", "Time since the CronJob was created."),
    ]
}

fn one_string() -> JSONSchemaProps {
    short_text(
        words::SCHEDULE_MAX_BYTES,
        "When Jobs start: minute, hour, day of month, month and day of week (0 to 6, or sun to sat), or one of @yearly, \
         @monthly, @weekly, @daily, @hourly, or @every and a duration such as 1h30m.",
    )
}

fn five_fields() -> JSONSchemaProps {
    let field = |description: &str| short_text(words::SCHEDULE_MAX_BYTES, description);
    object(
        "When Jobs start. Each field holds numbers, ranges, steps and lists of them, as in cron; an absent one \
         matches every value.",
        [
            ("minute", field("Minutes, 0 to 59.")),
            ("hour", field("Hours, 0 to 23.")),
            ("dayOfMonth", field("Days of the month, 1 to 31.")),
            ("month", field("Months, 1 to 12 or jan to dec.")),
            ("dayOfWeek", field("Days of the week, 0 to 6 from Sunday on, or sun to sat.")),
        ],
    )
}

fn spec(schedule: JSONSchemaProps) -> JSONSchemaProps {
    let fields = object(
        "When to start which Jobs.",
        [
            ("schedule", schedule),
            ("timeZone", text("Time zone of the schedule, such as Europe/Berlin. Default: UTC.")),
            (
                "startingDeadlineSeconds",
                not_negative(int64("How many seconds late a Job may start; then the run is left out. Default: any.")),
            ),
            (
                "concurrencyPolicy",
                word(
                    &words::CONCURRENCY_POLICIES,
                    "What happens when a run is due and a Job of an earlier one has not ended: Allow (default) starts another, \
                     Forbid waits, Replace deletes the earlier one.",
                ),
            ),
            ("suspend", flag("Starts no further Jobs; those that run go on. Default: false.")),
            (
                "deletionPolicy",
                word(
                    &words::DELETION_POLICIES,
                    "What happens when the CronJob is deleted while a Job runs: Delete (default) lets it go at once, \
                     WaitForActiveJobs keeps it until no Job runs.",
                ),
            ),
            ("jobTemplate", job_template()),
            (
                "successfulJobsHistoryLimit",
                not_negative(int32("How many successful Jobs are kept, newest first. Default: 3.")),
            ),
            ("failedJobsHistoryLimit", not_negative(int32("How many failed Jobs are kept, newest first. Default: 1."))),
        ],
    );
    requiring(&["schedule", "jobTemplate"], fields)
}

/// Open at every level: what a Job knows and this build does not must reach the Job.
fn job_template() -> JSONSchemaProps {
    let pod_spec = open(object("The pods of a Job; see `kubectl explain job.spec.template.spec`.", []));
    let pod = object("Metadata and spec of the pods.", [("metadata", metadata("pods")), ("spec", pod_spec)]);
    let job_spec = object("The Jobs; see `kubectl explain job.spec`.", [("template", open(pod))]);
    open(object("Metadata and spec of the Jobs.", [("metadata", metadata("Jobs")), ("spec", open(job_spec))]))
}

fn metadata(of: &str) -> JSONSchemaProps {
    open(object(
        &format!("Metadata of the {of}."),
        [
            ("labels", text_map(&format!("Labels of the {of}."))),
            ("annotations", text_map(&format!("Annotations of the {of}."))),
        ],
    ))
}

fn status() -> JSONSchemaProps {
    object(
        "What the controller saw.",
        [
            ("observedGeneration", int64("The generation of the CronJob that the rest is about.")),
            ("active", atomic_list(reference(), "Jobs that have not ended.")),
            ("lastScheduleTime", time("When the newest run was due.")),
            ("nextScheduleTime", time("When the next run is due; absent while suspended.")),
            ("conditions", conditions("Available, Progressing and Degraded.")),
        ],
    )
}

fn reference() -> JSONSchemaProps {
    let reference = object(
        "A Job.",
        [
            ("apiVersion", text("API version of the Job.")),
            ("kind", text("Job.")),
            ("namespace", text("Namespace of the Job.")),
            ("name", text("Name of the Job.")),
            ("uid", text("Uid of the Job.")),
            ("resourceVersion", text("Version of the Job when it was seen.")),
            ("fieldPath", text("Not used.")),
        ],
    );
    JSONSchemaProps { x_kubernetes_map_type: Some("atomic".to_owned()), ..reference }
}
