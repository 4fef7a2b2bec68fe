//! The spans that what a handler logs is in. They are of the highest level, so
//! that whoever wants to see only errors sees whose they are.

use tracing::{Span, error_span};

use crate::job::Job;

/// Around one attempt.
pub(super) fn attempt(job: &Job) -> Span {
    error_span!(
        "job.execute",
        job_id = job.id,
        r#type = job.job_type,
        attempt = job.attempts,
        correlation_id = job.correlation_id
    )
}

/// Around a hook, after the last attempt.
pub(super) fn hook(job: &Job) -> Span {
    error_span!(
        "job.hook",
        job_id = job.id,
        r#type = job.job_type,
        attempt = job.attempts,
        correlation_id = job.correlation_id
    )
}
