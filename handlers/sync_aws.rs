//! `sync_aws`: the desired state of an AWS resource.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Hold, Payload, Result};

/// What a resource should be. `config: null` means it should not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncAws {
    /// The `CloudFormation` type name, such as `AWS::S3::Bucket`.
    pub resource_type: String,
    /// The primary identifier.
    pub resource_id: String,
    /// The full specification, or null to delete.
    #[serde(deserialize_with = "Option::deserialize")]
    pub config: Option<Value>,
}

impl Payload for SyncAws {
    const TYPE: &'static str = "sync_aws";
    type Output = Value;

    fn validate(&self) -> Result<()> {
        if self.resource_type.split("::").count() != 3 || self.resource_type.split("::").any(str::is_empty) {
            return Err(Error::invalid("resourceType", "is a type name such as AWS::S3::Bucket"));
        }
        match &self.config {
            None | Some(Value::Object(_)) => Ok(()),
            Some(_) => Err(Error::invalid("config", "is an object, or null to delete the resource")),
        }
    }

    /// Two syncs of one resource never overlap and end in order.
    fn holds(&self) -> Result<Vec<Hold>> {
        let hold = Hold::resource("aws", &format!("{}/{}", self.resource_type, self.resource_id));
        Ok(vec![hold.map_err(|e| Error::invalid("resourceId", e))?])
    }
}
