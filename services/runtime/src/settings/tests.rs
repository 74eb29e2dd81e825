//! Settings with mistakes of an operator, and the reports of them.

use super::*;

#[derive(Debug)]
struct Sample {
    url: String,
    workers: u16,
    grace: Duration,
    origins: Vec<String>,
}

impl Config for Sample {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let url = settings.required("WATER_URL", "the URL, such as redis://host");
        let workers = settings.or("WATER_WORKERS", "2", "the number of threads, such as 2");
        let grace = settings.seconds("WATER_GRACE_SECONDS", "120", "the seconds of grace");
        let origins = settings.list("WATER_ORIGINS", "the origins, separated by commas");
        Ok(Self {
            url: url?,
            workers: workers?,
            grace: grace?,
            origins: origins?,
        })
    }
}

fn read<const N: usize>(pairs: [(&str, &str); N]) -> Result<Sample, Vec<String>> {
    from_settings(&mut Settings::from_pairs(pairs))
}

#[test]
fn what_is_not_set_takes_its_default() {
    let sample = read([
        ("WATER_URL", "redis://r"),
        ("WATER_ORIGINS", "https://a, https://b"),
    ]);
    let sample = sample.unwrap();
    assert_eq!((sample.url.as_str(), sample.workers), ("redis://r", 2));
    assert_eq!(sample.grace, Duration::from_secs(120));
    assert_eq!(sample.origins, ["https://a", "https://b"]);
}

#[test]
fn all_problems_come_at_once_and_none_shows_a_value() {
    let problems = read([
        ("WATER_LOG", "water=nonsense=7"),
        ("WATER_WORKERS", "many-secrets"),
        ("WATER_GRACE_SECONDS", "-1"),
    ])
    .unwrap_err();
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert!(
        problems[0].starts_with("WATER_LOG is not usable: "),
        "{}",
        problems[0]
    );
    let expected = [
        "WATER_URL is not set. Set it to the URL, such as redis://host.",
        "WATER_WORKERS is not usable: invalid digit found in string. \
         Set it to the number of threads, such as 2.",
        "WATER_GRACE_SECONDS is not usable: invalid digit found in string. \
         Set it to the seconds of grace.",
    ];
    assert_eq!(problems[1..], expected);
}

#[test]
fn an_empty_value_counts_as_absent() {
    let problems = read([("WATER_URL", ""), ("WATER_WORKERS", "")]).unwrap_err();
    assert_eq!(
        problems,
        ["WATER_URL is not set. Set it to the URL, such as redis://host."]
    );
}

#[test]
fn help_lists_every_variable_with_its_default() {
    let program = Program {
        name: "water-sample",
        version: "1.2.3",
        about: "A sample",
    };
    assert_eq!(
        help::<Sample>(&program),
        "\
water-sample 1.2.3: A sample

Settings (environment variables):

  WATER_LOG (default info)
      a tracing filter: a level, or levels by target, such as info,water_gate=debug

  WATER_URL (required)
      the URL, such as redis://host

  WATER_WORKERS (default 2)
      the number of threads, such as 2

  WATER_GRACE_SECONDS (default 120)
      the seconds of grace

  WATER_ORIGINS (optional)
      the origins, separated by commas
"
    );
}
