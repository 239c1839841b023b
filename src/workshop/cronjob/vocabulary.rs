//! The closed vocabularies of a `CronJob`, the defaults of absent words, and its keys on objects.

/// `spec.concurrencyPolicy`
pub const CONCURRENCY_POLICIES: [&str; 3] = [ALLOW, FORBID, REPLACE];
/// A run starts beside those that have not ended.
pub const ALLOW: &str = "Allow";
/// A run waits until the one before has ended.
pub const FORBID: &str = "Forbid";
/// A run ends those before it.
pub const REPLACE: &str = "Replace";

/// `spec.deletionPolicy`
pub const DELETION_POLICIES: [&str; 2] = [DELETE, WAIT_FOR_ACTIVE_JOBS];
/// The `CronJob` goes at once.
pub const DELETE: &str = "Delete";
/// The `CronJob` goes once no Job of it runs.
pub const WAIT_FOR_ACTIVE_JOBS: &str = "WaitForActiveJobs";

/// `spec.jobTemplate.spec.template.spec.restartPolicy`: a Job allows no other.
pub const RESTART_POLICIES: [&str; 2] = ["OnFailure", "Never"];

/// Finished Jobs that are kept by default.
pub const SUCCESSFUL_JOBS_HISTORY_LIMIT: i32 = 3;
/// Failed Jobs that are kept by default.
pub const FAILED_JOBS_HISTORY_LIMIT: i32 = 1;

/// Annotation of a Job: the time that it was due, in RFC 3339 and UTC.
pub const SCHEDULED_AT: &str = concat!("batch.", api_domain!(), "/scheduled-at");
/// Holds a `CronJob` until what its deletion policy asks for is done.
pub const FINALIZER: &str = concat!("batch.", api_domain!(), "/finalizer");
/// Annotation of a v2 object: the v1 schedule, where the five fields cannot say it.
pub const V1_SCHEDULE: &str = concat!("batch.", api_domain!(), "/v1-schedule");
/// Annotation of a v1 object: the v2 schedule as JSON, where the string cannot say it.
pub const V2_SCHEDULE: &str = concat!("batch.", api_domain!(), "/v2-schedule");

/// Longest name in bytes: a Job's may have 63, and 11 go to `-` and a time.
pub const NAME_MAX_BYTES: usize = 52;
/// Longest schedule in bytes: a list of every minute takes 169. Conversion puts it into an annotation, and those have a limit.
pub const SCHEDULE_MAX_BYTES: usize = 1024;

/// Jobs that are created in a second: for one `CronJob`, and for all together.
pub const JOBS_PER_SECOND: [u32; 2] = [1, 200];
