//! Files behind `https://`: whole or not at all, and no secret is printed.

use std::io::{self, Write};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::command::{Ingest, Run, command, run};
use crate::https::{Answer, Server, proxy};

const STRESS: &str = "dept,stressIndex\n34,1\n75,2\n";

fn whole(out: &mut dyn Write, _: &str) -> io::Result<()> {
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{STRESS}",
        STRESS.len()
    )
}

fn check(server: &Server, path: &str) -> Command {
    command(&format!("check stress {}", server.url(path)))
}

/// Fetches from a trusted server that gives this answer.
fn fetch(answer: Answer) -> Run {
    let (server, folder) = (Server::start(answer), tempfile::tempdir().unwrap());
    let mut check = check(&server, "/data/stress.csv?token=hunter2");
    check.env("WATER_SOURCE_CA_FILE", server.ca_file(folder.path()));
    let run = run(check, b"");
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    let port = server.url("");
    Run {
        stderr: run.stderr.replace(&port, "https://host"),
        ..run
    }
}

#[tokio::test]
async fn a_fetched_file_is_loaded_and_its_address_is_its_label_without_the_query() {
    let (ingest, server) = (Ingest::new().await, Server::start(whole));
    let words = format!(
        "load stress {} --as-of today --allow-missing",
        server.url("/data/stress.csv?token=hunter2")
    );
    let mut load = ingest.command(&words);
    load.env("WATER_SOURCE_CA_FILE", ingest.file("ca.crt", &server.ca))
        .env("WATER_SOURCE_USERNAME", "reader")
        .env("WATER_SOURCE_PASSWORD", "hunter2");
    let run = run(load, b"");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        (&run.summary["file"], &run.summary["rows"]),
        (&json!("stress.csv"), &json!(2))
    );
    let head = server.heads.lock().unwrap()[0].to_lowercase();
    // printf reader:hunter2 | base64
    assert!(
        head.contains("authorization: basic cmvhzgvyomh1bnrlcji="),
        "{head}"
    );
    let label = server.url("/data/stress.csv");
    assert_eq!(ingest.sql("SELECT source FROM water.loads"), label);
}

#[test]
fn an_answer_that_is_cut_off_is_no_file() {
    let run = fetch(|out, _| {
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{STRESS}"
        )
    });
    assert_eq!(
        (run.code, &run.summary["outcome"]),
        (Some(1), &json!("failed"))
    );
    let run = fetch(|out, _| {
        write!(
            out,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1b\r\n{STRESS}\r\n"
        )
    });
    assert_eq!(
        (run.code, &run.summary["outcome"]),
        (Some(1), &json!("failed"))
    );
    let run = fetch(|out, _| write!(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{STRESS}"));
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            Some(1),
            "fetching https://host/data/stress.csv: the server tells neither the file's length nor \
             its end: a cut-off file would look whole\n"
        )
    );
}

#[test]
fn a_server_that_is_away_for_a_moment_is_asked_again() {
    let answered = AtomicBool::new(false);
    let server = Server::start(move |out, head| {
        if answered.swap(true, Ordering::Relaxed) {
            whole(out, head)
        } else {
            write!(
                out,
                "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
            )
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut check = check(&server, "/data/stress.csv?token=hunter2");
    check.env("WATER_SOURCE_CA_FILE", server.ca_file(folder.path()));
    let run = run(check, b"");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            Some(0),
            "stress.csv: the server answered status 503: trying again in 1 s\n"
        )
    );
    assert_eq!(server.heads.lock().unwrap().len(), 2);
}

#[test]
fn chunks_are_read_to_their_end() {
    let run = fetch(|out, _| {
        write!(
            out,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{STRESS}\r\n0\r\n\r\n",
            STRESS.len()
        )
    });
    assert_eq!(
        (run.code, &run.summary["rows"]),
        (Some(0), &json!(2)),
        "{}",
        run.stderr
    );
}

#[test]
fn chunks_whose_last_line_has_no_end_may_be_cut_off() {
    let run = fetch(|out, _| {
        let cut = STRESS.trim_end();
        write!(
            out,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{cut}\r\n0\r\n\r\n",
            cut.len()
        )
    });
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    let why = "the last line has no end, so the input may be cut off";
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

#[test]
fn a_status_a_huge_file_and_an_unencrypted_redirect_are_failures_with_a_reason() {
    let cases: [(Answer, &str); 3] = [
        (
            |out, _| write!(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            "the server answered status 404",
        ),
        (
            |out, _| {
                write!(
                    out,
                    "HTTP/1.1 200 OK\r\nContent-Length: 4294967297\r\n\r\nd"
                )
            },
            "the file has more than 4 GiB: load it from a volume",
        ),
        (
            |out, _| {
                let head = "HTTP/1.1 302 Found\r\nLocation: http://localhost/x?token=hunter2\r\n";
                write!(out, "{head}Content-Length: 0\r\n\r\n")
            },
            "the server redirects to an address that is not https://",
        ),
    ];
    for (answer, why) in cases {
        let run = fetch(answer);
        let said = format!("fetching https://host/data/stress.csv: {why}\n");
        assert_eq!((run.code, run.stderr), (Some(1), said));
    }
}

#[test]
fn a_server_that_is_silent_or_slow_is_not_waited_for() {
    let silent: Answer = |_, _| loop {
        std::thread::park();
    };
    let slow: Answer = |out, _| {
        write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{STRESS}"
        )?;
        out.flush()?;
        loop {
            std::thread::park();
        }
    };
    for answer in [silent, slow] {
        let (server, folder) = (Server::start(answer), tempfile::tempdir().unwrap());
        let mut check = check(&server, "/stress.csv");
        check
            .env("WATER_SOURCE_CA_FILE", server.ca_file(folder.path()))
            .env("WATER_SOURCE_DEADLINE_SECONDS", "1");
        let run = run(check, b"");
        assert_eq!(run.code, Some(1));
        let why = "the file did not come in time, which WATER_SOURCE_DEADLINE_SECONDS sets\n";
        assert!(run.stderr.ends_with(why), "{}", run.stderr);
    }
}

#[test]
fn a_host_that_nobody_knows_is_looked_up_once() {
    // No name server is asked for a label that is too long.
    let host = format!("{}.example", "a".repeat(64));
    for (address, proxy) in [
        (format!("https://{host}/x"), None),
        (
            "https://localhost/x".to_owned(),
            Some(format!("http://{host}:3128")),
        ),
    ] {
        let mut check = command(&format!("check stress {address}"));
        check.env("WATER_SOURCE_DEADLINE_SECONDS", "60");
        if let Some(proxy) = proxy {
            check.env("WATER_SOURCE_PROXY", proxy);
        }
        let run = run(check, b"");
        let said = format!("fetching {address}: the host's name is not known\n");
        assert_eq!((run.code, run.stderr), (Some(1), said));
    }
}

#[test]
fn a_server_is_believed_for_its_authority_only() {
    let server = Server::start(whole);
    let run = run(check(&server, "/stress.csv"), b"");
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr
            .contains("the server's certificate is not trusted"),
        "{}",
        run.stderr
    );
    assert_eq!(server.heads.lock().unwrap().len(), 0);
}

#[test]
fn a_proxy_is_asked_when_one_is_set_and_no_other() {
    let (server, folder) = (Server::start(whole), tempfile::tempdir().unwrap());
    let (address, asked) = proxy();
    let ca = server.ca_file(folder.path());
    let through = |variable: &str| {
        let mut check = check(&server, "/stress.csv");
        check
            .env("WATER_SOURCE_CA_FILE", &ca)
            .env(variable, format!("http://{address}"));
        let run = run(check, b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        asked_of(&asked)
    };
    assert_eq!(through("HTTPS_PROXY"), 0);
    assert_eq!(through("WATER_SOURCE_PROXY"), 1);
}

fn asked_of(asked: &Mutex<Vec<String>>) -> usize {
    asked.lock().unwrap().len()
}

#[test]
fn settings_that_cannot_be_are_wrong_usage_and_no_secret_is_repeated() {
    for (variable, value, why) in [
        (
            "WATER_SOURCE_PASSWORD",
            "hunter2",
            "WATER_SOURCE_USERNAME is not set, and WATER_SOURCE_PASSWORD is. Set both or none.\n",
        ),
        (
            "WATER_SOURCE_USERNAME",
            "reader",
            "WATER_SOURCE_PASSWORD is not set, and WATER_SOURCE_USERNAME is. Set both or none.\n",
        ),
        (
            "WATER_SOURCE_PROXY",
            "u:hunter2@proxy",
            "WATER_SOURCE_PROXY is not usable: it begins neither with http:// nor with https://. \
             Set it to the proxy between, such as http://proxy.example:3128.\n",
        ),
        (
            "WATER_SOURCE_CA_FILE",
            "/dev/null",
            "fetching https://localhost/x: the file /dev/null that WATER_SOURCE_CA_FILE names has no \
             certificate: it must be PEM\n",
        ),
    ] {
        let mut check = command("check stress https://localhost/x");
        check.env(variable, value);
        let run = run(check, b"");
        assert_eq!((run.code, run.stderr.as_str()), (Some(64), why));
    }
}
