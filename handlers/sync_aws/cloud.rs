//! The Cloud Control API: one client, and one thread that drives it.

use std::future::Future;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::profile::ProfileFileCredentialsProvider;
#[expect(deprecated, reason = "see `profile_files`")]
use aws_config::profile::profile_file::{ProfileFileKind, ProfileFiles};
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_cloudcontrol::Client;
use aws_sdk_cloudcontrol::config::{AppName, ProvideCredentials as _, Region, SharedCredentialsProvider};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::AwsSettings;
use super::trouble::{NO_CREDENTIALS, NO_REGION, Trouble, UNREACHABLE, causes};

/// How long one call may take to be answered.
const CALL: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
/// How often the SDK sends a call, with the same client token. A lost packet or a moment of throttling
/// then costs the job no attempt.
const SENDS: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Connects to AWS as the settings say. The first job makes the connection.
#[derive(Default)]
pub(super) struct Cloud {
    settings: AwsSettings,
    driver: OnceLock<Driver>,
    client: Mutex<Option<Client>>,
    /// One thread reads settings and credentials; the others wait for its client.
    connecting: tokio::sync::Mutex<()>,
}

/// A thread that waits for the network, so that all threads that run jobs share connections and
/// credentials.
struct Driver {
    handle: Handle,
    /// The thread ends when this is dropped.
    _end: oneshot::Sender<()>,
}

impl Driver {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().thread_name("jobq-aws").build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        std::thread::Builder::new().name("jobq-aws".to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
            // A DNS lookup in progress would delay the end.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _end: end })
    }
}

impl Cloud {
    pub(super) fn new(settings: AwsSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Runs the future on the calling thread.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, Trouble> {
        let driver = match self.driver.get() {
            Some(driver) => driver,
            None => {
                let started = Driver::start().map_err(|e| Trouble::new(UNREACHABLE, format!("no thread: {e}")))?;
                self.driver.get_or_init(|| started)
            }
        };
        Ok(driver.handle.block_on(future))
    }

    /// The client. The first call makes it from the settings, the environment and the profile files.
    pub(super) async fn client(&self) -> Result<Client, Trouble> {
        if let Some(client) = &*self.known() {
            return Ok(client.clone());
        }
        let _first = self.connecting.lock().await;
        if let Some(client) = &*self.known() {
            return Ok(client.clone());
        }
        let client = self.connect().await?;
        Ok(self.known().insert(client).clone())
    }

    /// Makes the next call read settings and credentials again, if the error is about these.
    pub(super) fn learn(&self, trouble: &Trouble) {
        if trouble.is_about_credentials() {
            *self.known() = None;
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Client, Trouble> {
        let AwsSettings { region, profile, endpoint_url } = &self.settings;
        let http = aws_smithy_http_client::Builder::new();
        let http = http.tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let files = profile_files();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .profile_files(files.clone())
            .http_client(http.clone())
            .retry_config(RetryConfig::standard().with_max_attempts(SENDS).with_initial_backoff(FIRST_WAIT))
            .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(CALL).build());
        if let Ok(name) = AppName::new("jobq") {
            loader = loader.app_name(name);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = profile {
            loader = loader.profile_name(profile);
        }
        let config = loader.load().await;
        let Some(region) = config.region().cloned() else {
            let how = "set AWS_REGION, `region` in ~/.aws/config, or in .jobq/config.toml: [handlers.sync_aws] region";
            return Err(Trouble::new(NO_REGION, format!("no AWS region is known here; {how}")));
        };
        // The SDK would prefer credentials of the environment, and work in another account than the settings name.
        let named = profile.as_ref().map(|profile| {
            let around = ProviderConfig::without_region().with_region(Some(region)).with_http_client(http);
            let provider = ProfileFileCredentialsProvider::builder().configure(&around).profile_files(files);
            SharedCredentialsProvider::new(provider.profile_name(profile).build())
        });
        // Here and not in the first call, whose errors do not tell missing credentials from other causes.
        let provider = named.or_else(|| config.credentials_provider());
        if let Some(provider) = &provider {
            provider.provide_credentials().await.map_err(|error| without_credentials(&error))?;
        }
        let mut config = aws_sdk_cloudcontrol::config::Builder::from(&config);
        config.set_credentials_provider(provider);
        if let Some(url) = endpoint_url {
            config = config.endpoint_url(url);
        }
        Ok(Client::from_conf(config.build()))
    }
}

/// The profile files that lie at absolute paths. A job can write to a relative one, below the root, and a profile names
/// programs that the SDK runs.
#[expect(
    deprecated,
    reason = "the names that are not deprecated are those of another crate, which we do not depend on"
)]
fn profile_files() -> ProfileFiles {
    // Read as the SDK reads them: a value that is not UTF-8 counts as unset.
    let value = |name| std::env::var(name).ok();
    let home = value("HOME");
    let has_home = home.as_ref().is_some_and(|home| Path::new(home).is_absolute());
    let is_absolute = |name| {
        let named = value(name);
        let path = Path::new(named.as_deref().unwrap_or("~"));
        let is_absolute = path.is_absolute() || (has_home && path.starts_with("~"));
        if !is_absolute && (named.is_some() || home.is_some()) {
            tracing::warn!(
                "AWS profiles: the path in {name}, or in HOME, is relative and was not used: set an absolute path"
            );
        }
        is_absolute
    };
    ProfileFiles::builder()
        // The SDK panics if there is no file at all.
        .with_contents(ProfileFileKind::Config, "")
        .include_default_config_file(is_absolute("AWS_CONFIG_FILE"))
        .include_default_credentials_file(is_absolute("AWS_SHARED_CREDENTIALS_FILE"))
        .build()
}

fn without_credentials(error: &CredentialsError) -> Trouble {
    let mut causes = causes(error);
    // A `credential_process` may print secrets.
    if let Some(at) = causes.find("Stderr:") {
        causes.truncate(at);
        causes.push_str("jobq does not keep its output; run it by hand");
    }
    match error {
        CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_) => {
            // The SDK's words when the profile needs a feature that was not compiled in.
            let how = if causes.contains("cargo feature") {
                "this jobq was built without that: profiles of IAM Identity Center need `--features aws-sso`, and any profile can \
                 be used by another with `credential_process = aws configure export-credentials --profile NAME`"
            } else {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, log in with `aws configure` or `aws sso login`, or \
                 name a profile in .jobq/config.toml: [handlers.sync_aws] profile"
            };
            Trouble::new(NO_CREDENTIALS, format!("no AWS credentials: {causes}; {how}; then `jobq retry`"))
        }
        // The service or the program that provides them has failed.
        _ => Trouble::new(UNREACHABLE, format!("AWS credentials could not be had: {causes}")),
    }
}
