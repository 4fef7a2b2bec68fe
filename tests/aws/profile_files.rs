//! Which profile files are read. A profile can name a program that is run for credentials, so a file that a job may have
//! written must not be one of them. No server is needed: credentials come before the first call.

use std::path::Path;
use std::process::{Command, Stdio};

use jobq::handlers::SyncAws;
use jobq::{NewJob, Queue};
use serde_json::json;

/// Writes a profile to each of these files, below the root, and runs a job. True if its `credential_process` was run.
fn runs_a_credential_process(files: &[&str], settings: &str, environment: &[(&str, String)], root: &Path) -> bool {
    let queue = Queue::init(root).unwrap();
    let marker = root.join("marker");
    for file in files {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("[default]\ncredential_process = touch {}\n", marker.display())).unwrap();
    }
    // Nobody listens there.
    let place = "region = \"eu-central-1\"\nendpoint_url = \"http://127.0.0.1:1\"\n";
    std::fs::write(root.join(".jobq/config.toml"), format!("[handlers.sync_aws]\n{place}{settings}")).unwrap();
    let bucket = SyncAws::resource("AWS::S3::Bucket", "b", json!({}));
    let id = queue.enqueue(NewJob::of(&bucket).max_attempts(1)).unwrap().id;
    let mut worker = Command::new(env!("CARGO_BIN_EXE_jobq"));
    worker.args(["worker", "--drain"]).current_dir(root).env_clear().stdin(Stdio::null());
    worker.env("PATH", std::env::var_os("PATH").unwrap()).env("AWS_EC2_METADATA_DISABLED", "true");
    let output = worker.envs(environment.iter().map(|(name, value)| (name, value))).output().unwrap();
    let error = queue.get(&id).unwrap().last_error.unwrap_or_else(|| panic!("{output:?}"));
    let has_run = marker.exists();
    // Without any profile there are no credentials, and with this one the program has not printed them.
    let expected = if has_run { "aws_unreachable: AWS credentials" } else { "no_credentials: " };
    assert!(error.starts_with(expected), "{error}");
    has_run
}

/// The job with the default profile, and with one that `config.toml` names, which is read in another way.
#[track_caller]
fn assert_runs(should: bool, files: &[&str], environment: impl Fn(&Path) -> Vec<(&'static str, String)>) {
    for settings in ["", "profile = \"default\"\n"] {
        let root = tempfile::tempdir().unwrap();
        let environment = environment(root.path());
        let has_run = runs_a_credential_process(files, settings, &environment, root.path());
        assert_eq!(has_run, should, "{settings:?} {environment:?}");
    }
}

fn below(root: &Path, name: &str) -> String {
    root.join(name).to_str().unwrap().to_owned()
}

#[test]
fn without_an_absolute_home_no_default_profile_file_is_read() {
    assert_runs(false, &["~/.aws/config", ".aws/config", "~/.aws/credentials"], |_| vec![]);
    for home in ["", ".", "home", "~"] {
        let files = [".aws/config", "home/.aws/config", "~/.aws/config", ".aws/credentials", "home/.aws/credentials"];
        assert_runs(false, &files, |_| vec![("HOME", home.to_owned())]);
    }
}

#[test]
fn a_profile_file_at_a_relative_path_is_never_read() {
    for variable in ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"] {
        for path in ["profiles", "./profiles", ""] {
            assert_runs(false, &["profiles"], |root| vec![(variable, path.to_owned()), ("HOME", below(root, "home"))]);
        }
        assert_runs(false, &["~/profiles"], |_| vec![(variable, "~/profiles".to_owned())]);
    }
}

#[test]
fn profile_files_at_absolute_paths_are_read() {
    for variable in ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"] {
        assert_runs(true, &["profiles"], |root| vec![(variable, below(root, "profiles"))]);
        assert_runs(true, &["profiles"], |root| vec![(variable, below(root, "profiles")), ("HOME", ".".to_owned())]);
        let of_home = |root: &Path| vec![(variable, "~/profiles".to_owned()), ("HOME", below(root, "home"))];
        assert_runs(true, &["home/profiles"], of_home);
    }
    for file in ["home/.aws/config", "home/.aws/credentials"] {
        assert_runs(true, &[file], |root| vec![("HOME", below(root, "home"))]);
    }
}
