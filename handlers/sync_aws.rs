//! `sync_aws`: the desired state of an AWS resource, made true by the Cloud
//! Control API. One way for all types of resources.
//!
//! ```text
//! difference   what of the given properties is not as it should be
//! checkpoint   what an attempt leaves for the next one, before and after each call
//! cloud        one client, one thread that drives it, credentials from the usual places
//! api          the calls
//! trouble      what went wrong, and whether another attempt may help
//! doubt        creates that must not be repeated
//! handler      what runs the jobs
//! attempt      one attempt: what is there, what is asked of AWS, the waiting
//! ends         how it ends, and what is kept of it
//! remote       completed jobs beside what AWS has
//! in_order     several reads at once, told of in order
//! ```

#[cfg(feature = "aws")]
mod api;
#[cfg(feature = "aws")]
mod attempt;
#[cfg(feature = "aws")]
mod checkpoint;
#[cfg(feature = "aws")]
mod cloud;
#[cfg(feature = "aws")]
mod difference;
#[cfg(feature = "aws")]
mod doubt;
#[cfg(feature = "aws")]
mod ends;
#[cfg(feature = "aws")]
mod handler;
#[cfg(feature = "aws")]
mod in_order;
#[cfg(feature = "aws")]
mod remote;
#[cfg(feature = "aws")]
mod trouble;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "aws")]
pub use self::handler::SyncAwsHandler;
use crate::{Backoff, Defaults, Error, Hold, Keep, Payload, Result};

/// What a resource should be. `config: null` means it should not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncAws {
    /// The `CloudFormation` type name, such as `AWS::S3::Bucket`.
    pub resource_type: String,
    /// The primary identifier.
    pub resource_id: String,
    /// The properties it should have, or null to delete it. A property that is null
    /// should not be set; one that is not given is left alone.
    #[serde(deserialize_with = "Option::deserialize")]
    pub config: Option<Value>,
}

/// What a completed sync leaves.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::handlers::{SyncAws, SyncedResource};
/// let bucket = SyncAws::resource("AWS::S3::Bucket", "invoices", serde_json::json!({ "BucketName": "invoices" }));
/// let id = queue.enqueue(bucket)?.id;
/// // … a worker syncs it …
/// let synced: Option<SyncedResource> = queue.result::<SyncAws>(&id)?;
/// assert_eq!(synced, None, "nobody has yet");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncedResource {
    /// The primary identifier, as AWS has it.
    pub identifier: String,
    /// What was done.
    pub operation: Operation,
    /// AWS's name for the request; `None` if none was needed.
    pub request_token: Option<String>,
    /// sha256 of the given properties as they were read back, with sorted keys;
    /// `None` if there is no resource any more.
    pub properties_sha256: Option<String>,
}

/// What a sync did.
///
/// ```
/// use jobq::handlers::Operation;
/// assert_eq!(serde_json::to_value(Operation::Unchanged).unwrap(), "unchanged");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It was not there.
    Created,
    /// Something was not as given.
    Updated,
    /// It was there, and should not be.
    Deleted,
    /// All was as it should be.
    Unchanged,
}

/// Where AWS is and as whom to call it. What is not given comes from the usual
/// places: the environment, `~/.aws`, the container or the machine.
///
/// ```
/// use jobq::handlers::AwsSettings;
/// let settings = AwsSettings { region: Some("eu-central-1".to_owned()), ..AwsSettings::default() };
/// # let _ = settings;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AwsSettings {
    /// The region, such as `eu-central-1`.
    pub region: Option<String>,
    /// A profile of `~/.aws/config`.
    pub profile: Option<String>,
    /// Another endpoint for Cloud Control than AWS's own.
    pub endpoint_url: Option<String>,
}

impl SyncAws {
    /// A resource with these properties.
    ///
    /// ```
    /// use jobq::handlers::SyncAws;
    /// let bucket = serde_json::json!({ "BucketName": "invoices", "Tags": [{ "Key": "team", "Value": "billing" }] });
    /// let sync = SyncAws::resource("AWS::S3::Bucket", "invoices", bucket);
    /// assert_eq!(SyncAws::absent("AWS::S3::Bucket", "invoices").config, None);
    /// # let _ = sync;
    /// ```
    pub fn resource(resource_type: impl Into<String>, resource_id: impl Into<String>, config: Value) -> Self {
        Self { resource_type: resource_type.into(), resource_id: resource_id.into(), config: Some(config) }
    }

    /// A resource that should not be.
    pub fn absent(resource_type: impl Into<String>, resource_id: impl Into<String>) -> Self {
        Self { resource_type: resource_type.into(), resource_id: resource_id.into(), config: None }
    }

    /// The lane: two syncs of one resource never overlap and end in order.
    fn lane(&self) -> Result<Hold> {
        let hold = Hold::resource("aws", &format!("{}/{}", self.resource_type, self.resource_id));
        hold.map_err(|e| Error::invalid("resourceId", e))
    }
}

impl Payload for SyncAws {
    const TYPE: &'static str = "sync_aws";
    type Output = SyncedResource;

    fn validate(&self) -> Result<()> {
        if self.resource_type.split("::").count() != 3 || self.resource_type.split("::").any(str::is_empty) {
            return Err(Error::invalid("resourceType", "is a type name such as AWS::S3::Bucket"));
        }
        if self.resource_id.is_empty() {
            return Err(Error::invalid("resourceId", "is empty"));
        }
        match &self.config {
            None | Some(Value::Object(_)) => Ok(()),
            Some(_) => Err(Error::invalid("config", "is an object, or null to delete the resource")),
        }
    }

    fn holds(&self) -> Result<Vec<Hold>> {
        Ok(vec![self.lane()?])
    }

    fn defaults() -> Defaults {
        Defaults {
            // Some resources take AWS the better part of an hour.
            timeout: Duration::from_secs(3_600),
            // Throttling, and work of others on the same resource, take longer to pass than a file that is busy.
            max_attempts: 5,
            backoff: Backoff { base_ms: 2_000, max_ms: 60_000 },
            // The latest one is what AWS is compared with.
            retention: Keep::Forever,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_a_resource_is_refused_and_named() {
        for (payload, field) in [
            (json!({"resourceType": "AWS::S3", "resourceId": "b", "config": null}), "resourceType"),
            (json!({"resourceType": "AWS::::Bucket", "resourceId": "b", "config": null}), "resourceType"),
            (json!({"resourceType": "AWS::S3::Bucket", "resourceId": "", "config": null}), "resourceId"),
            (json!({"resourceType": "AWS::S3::Bucket", "resourceId": "b", "config": []}), "config"),
        ] {
            let sync: SyncAws = serde_json::from_value(payload).unwrap();
            assert_eq!(sync.validate().unwrap_err().field(), Some(field));
        }
        let without_config = json!({"resourceType": "AWS::S3::Bucket", "resourceId": "b"});
        assert!(serde_json::from_value::<SyncAws>(without_config).is_err(), "to delete is said, not left out");
    }

    #[test]
    fn one_resource_is_one_lane_whatever_it_should_be() {
        let one = SyncAws::resource("AWS::S3::Bucket", "b", json!({}));
        assert_eq!(one.holds().unwrap(), SyncAws::absent("AWS::S3::Bucket", "b").holds().unwrap());
        assert_eq!(one.holds().unwrap()[0].as_str(), "aws:AWS::S3::Bucket/b");
    }
}
