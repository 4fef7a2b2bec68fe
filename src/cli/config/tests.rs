use super::*;

/// The lines of the template that begin with one of these, without it.
fn lines_of(marks: &[&str]) -> String {
    let unmarked = |line: &'static str| marks.iter().find_map(|mark| line.strip_prefix(mark));
    let settings = TEMPLATE.lines().filter_map(unmarked).filter(|l| l.contains(" = ") || l.starts_with('['));
    settings.fold(String::new(), |text, line| text + line + "\n")
}

/// The problems of a text: the line, the name, and why.
fn problems(text: &str) -> Vec<(usize, String, String)> {
    let told = Config::parse(text).err().unwrap_or_default();
    told.into_iter().map(|problem| (problem.line, problem.name, problem.why)).collect()
}

#[test]
fn the_template_shows_the_defaults() {
    let (shown, default) = (Config::parse(&lines_of(&["# "])).unwrap(), Config::parse("").unwrap());
    let values = |config: &Config| -> BTreeMap<String, serde_json::Value> {
        config.settings(&BTreeMap::new()).into_iter().map(|setting| (setting.name, setting.value)).collect()
    };
    assert_eq!(values(&shown), values(&default));
    assert!(Config::parse(TEMPLATE).unwrap().lines.is_empty(), "all of it is commented out");
}

#[test]
fn the_template_has_every_setting_and_each_can_be_used() {
    let config = Config::parse(&lines_of(&["## ", "# "])).unwrap();
    assert_eq!(config.limits()["claude_extraction"], 2);
    assert_eq!(config.retention.types["send_mail"], Some(Duration::from_secs(3 * 86_400)));
    // What holds for every type is shown for one.
    let shared = ["concurrency", "timeout", "max_attempts", "backoff", "backoff_max"];
    for setting in config.settings(&BTreeMap::new()) {
        let (table, key) = setting.name.rsplit_once('.').unwrap_or(("", &setting.name));
        let by_example = table.starts_with("handlers.") && shared.contains(&key);
        assert!(config.lines.contains_key(&setting.name) || by_example, "the template lacks {}", setting.name);
    }
}

/// With the two tests above: what is in one of template, reader and list is in all of them.
#[test]
fn whatever_the_file_can_say_is_listed() {
    let config = Config::parse(&lines_of(&["## ", "# "])).unwrap();
    let listed: Vec<String> = config.settings(&BTreeMap::new()).into_iter().map(|setting| setting.name).collect();
    for name in config.lines.keys() {
        let is_table = config.lines.keys().any(|other| other.starts_with(&format!("{name}.")));
        // Variables are listed with their table.
        let is_variable = name.contains(".env.");
        assert!(listed.contains(name) || is_table || is_variable, "{name} is read, but not listed");
    }
}

#[test]
fn every_mistake_is_told_with_its_line_and_what_was_meant() {
    let text = "bussy_timeout = \"5s\"\nreconcile_at_start = 1\n\n[worker]\nconcurency = 2\nlease = \"10ms\"\n\
                [retention]\nfailed = \"1d\"\n[handlers.x]\ntimout = \"5s\"\nconcurrency = \"2\"\n[wroker]\n";
    let told = problems(text);
    let places: Vec<(usize, &str)> = told.iter().map(|(line, name, _)| (*line, name.as_str())).collect();
    let expected = [
        (1, "bussy_timeout"),
        (2, "reconcile_at_start"),
        (5, "worker.concurency"),
        (6, "worker.lease"),
        (8, "retention.failed"),
        (10, "handlers.x.timout"),
        (11, "handlers.x.concurrency"),
        (12, "wroker"),
    ];
    assert_eq!(places, expected);
    for (at, word) in [
        (0, "did you mean `busy_timeout`?"),
        (1, "must be true or false, but is 1"),
        (2, "did you mean `concurrency`?"),
        (3, "at least 100ms"),
        (4, "there are completed, events, types"),
        (5, "did you mean `timeout`?"),
        (6, "must be a whole number, but is a text"),
        (7, "did you mean `worker`?"),
    ] {
        assert!(told[at].2.contains(word), "{:?}", told[at]);
    }
}

#[test]
fn what_stands_in_the_wrong_table_is_told_its_right_one() {
    for (text, meant) in [
        ("lease = \"5m\"", "worker.lease"),
        ("poll_interval = \"5m\"", "worker.poll_interval"),
        ("[worker]\nbusy_timeout = \"5s\"\nevents = \"1d\"", "retention.events"),
    ] {
        assert!(problems(text).pop().unwrap().2.contains(&format!("did you mean `{meant}`?")), "{text}");
    }
    // The commonest: added at the end of the file, below a table.
    let told = problems("[worker]\nlease = \"5m\"\nbusy_timeout = \"5s\"");
    assert!(told[0].2.contains("`busy_timeout` belongs to no table: write it above the first one"), "{told:?}");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let told = problems("busy_timeout = \"5s\"\n\n[worker\nlease = \"5m\"\n");
    assert_eq!((told[0].0, told[0].1.as_str()), (3, "config"), "{told:?}");
    let twice = problems("busy_timeout = \"5s\"\nbusy_timeout = \"6s\"\n");
    assert_eq!((twice[0].0, twice[0].1.as_str()), (2, "config"), "{twice:?}");
}

#[test]
fn retention_is_a_time_or_for_ever() {
    let retention = Config::parse("[retention]\ncompleted = \"forever\"\nevents = \"1h\"").unwrap().retention;
    assert_eq!((retention.completed, retention.events), (None, Some(Duration::from_secs(3_600))));
    for (text, name) in [
        ("[retention]\ncompleted = \"soon\"", "retention.completed"),
        ("[retention]\nevents = \"\"", "retention.events"),
        ("[retention.types]\nx = \"never\"", "retention.types.x"),
        ("[retention.types]\nx = 3", "retention.types.x"),
        ("[retention]\nfailed = \"1d\"", "retention.failed"),
    ] {
        let told = problems(text);
        assert_eq!((told[0].0, told[0].1.as_str()), (2, name), "{text}");
    }
}

#[test]
fn what_is_typed_counts_before_the_file_and_that_before_the_defaults() {
    use clap::Parser as _;
    let options = |config: &Config, typed: &[&str]| {
        let cli = args::Cli::parse_from([&["jobq", "worker"], typed].concat());
        let args::Command::Worker(args) = cli.command else { panic!("another command") };
        let options = config.worker_options(&args);
        (options.concurrency, options.lease, options.poll_interval, options.grace)
    };
    let seconds = Duration::from_secs;
    let (default, file) =
        (Config::default(), "concurrency = 7\nlease = \"1m\"\npoll_interval = \"2s\"\ngrace = \"3s\"");
    let file = Config::parse(&format!("[worker]\n{file}")).unwrap();
    assert_eq!(options(&default, &[]), (4, seconds(300), seconds(1), None));
    assert_eq!(options(&file, &[]), (7, seconds(60), seconds(2), Some(seconds(3))));
    let typed = ["--concurrency", "9", "--lease", "9m", "--poll-interval", "9s", "--grace", "0s"];
    assert_eq!(options(&file, &typed), (9, seconds(540), seconds(9), Some(seconds(0))));
}
