use super::{File, Given, file, nothing};

#[test]
fn a_value_of_the_wrong_type_is_refused_where_it_stands() {
    file("[idempotency]\nlease_ms = \"500\"\nkey_policy = 1\nwait_ms = 1.5\nreuse = true\n").refused(&[
        "FILE:2:12: `idempotency.lease_ms` must be a whole number from 50 to 3600000, not a string.",
        "FILE:3:14: `idempotency.key_policy` must be `required` or `optional`, not an integer.",
        "FILE:4:11: `idempotency.wait_ms` must be a whole number from 0 to 60000, not a number with a fraction.",
        "FILE:5:9: `idempotency.reuse` must be `after_tombstone` or `never`, not a boolean.",
    ]);
    file("[store]\nurl = 1979-05-27\n[log]\nlevel = [\"info\"]\n[server]\nlisten = 8080\n").refused(&[
        "FILE:2:7: `store.url` must be a string, not a date.",
        "FILE:4:9: `log.level` must be a string, not an array.",
        "FILE:6:10: `server.listen` must be an IP address and port such as `127.0.0.1:8080` or `[::1]:8080`, not an integer.",
    ]);
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range() {
    for bad in ["49", "3600001", "-1", "99999999999999999999999999999999999999999", "5e3", "500 ", ""] {
        nothing().env("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", bad).refused(&[&format!(
            "COUNTERFOIL_IDEMPOTENCY__LEASE_MS: `idempotency.lease_ms` must be a whole number from 50 to 3600000, not `{bad}`."
        )]);
    }
    nothing()
        .flag("--drain-ms", "server", "drain_ms", "30000")
        .refused(&["--drain-ms: `server.drain_ms` must be a whole number from 0 to 29999, not `30000`."]);
    file("[server]\nbody_limit_bytes = 1023\n").refused(&[
        "FILE:2:20: `server.body_limit_bytes` must be a whole number from 1024 to 67108864, not `1023`.",
    ]);
}

#[test]
fn both_ends_of_a_range_are_allowed() {
    let ends =
        file("[idempotency]\nwait_ms = 0\nattempts_max = 100\n[server]\nbody_limit_bytes = 67_108_864\n")
            .load();
    assert_eq!((ends.idempotency.wait_ms, ends.idempotency.attempts_max), (0, 100));
    assert_eq!(ends.server.body_limit_bytes, 64 * 1024 * 1024);
}

#[test]
fn a_word_that_is_not_a_choice_is_refused_with_the_choices() {
    nothing()
        .env("COUNTERFOIL_LOG__FORMAT", "xml")
        .refused(&["COUNTERFOIL_LOG__FORMAT: `log.format` must be `text`, `json` or `auto`, not `xml`."]);
}

#[test]
fn empty_and_unprintable_text_is_refused() {
    nothing().env("COUNTERFOIL_STORE__URL", "").env("COUNTERFOIL_LOG__LEVEL", "a\nb").refused(&[
        "COUNTERFOIL_LOG__LEVEL: `log.level` must be UTF-8 text without control characters.",
        "COUNTERFOIL_STORE__URL: `store.url` must not be empty; remove it to get the default.",
    ]);
}

#[test]
fn a_long_or_many_lined_value_stays_on_one_line() {
    let long = format!("a\nb{}", "c".repeat(1_000));
    let problems = nothing().env("COUNTERFOIL_OUTBOX__BATCH", &long).problems();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].len() < 200 && problems[0].contains("`a\\nbccc"), "{problems:?}");
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_name() {
    file("[idempotency]\nleas_ms = 1\nlease = 1\nLease-Ms = 1\ntimeout_ms = 1\n[log]\nzebra = 1\n").refused(
        &[
            "FILE:2:1: `idempotency.leas_ms` is not a setting; did you mean `lease_ms`?",
            "FILE:3:1: `idempotency.lease` is not a setting; did you mean `lease_ms`?",
            "FILE:4:1: `idempotency.Lease-Ms` is not a setting; did you mean `lease_ms`?",
            "FILE:5:1: `idempotency.timeout_ms` is not a setting; did you mean `gateway.timeout_ms`?",
            "FILE:7:1: `log.zebra` is not a setting; the section `log` has format, level.",
        ],
    );
}

#[test]
fn an_unknown_section_is_refused_once_with_the_nearest_name() {
    file("[idempotencey]\nlease_ms = 1\nother = 2\n[zebra]\n").refused(&[
        "FILE:1:2: `idempotencey` is not a section; did you mean `[idempotency]`?",
        "FILE:4:2: `zebra` is not a section; the sections are server, store, idempotency, gateway, peering, redis, outbox, limits, log, peers.",
    ]);
}

#[test]
fn a_key_outside_its_section_and_a_section_that_is_no_table_are_refused() {
    file("lease_ms = 1\nserver = 1\n").refused(&[
        "FILE:1:1: `lease_ms` outside any section is not a setting; did you mean `idempotency.lease_ms`?",
        "FILE:2:1: `server` must be a section `[server]`, not an integer.",
    ]);
    file("[[server]]\n").refused(&["FILE:1:3: `server` must be a section `[server]`, not an array."]);
}

#[test]
fn an_unknown_variable_is_refused_by_name() {
    nothing()
        .env("COUNTERFOIL_IDEMPOTENCY__LEAS_MS", "1")
        .env("COUNTERFOIL_IDEMPOTENSY__LEASE_MS", "1")
        .env("COUNTERFOIL_ZEBRA__CROSSING", "1")
        .env("COUNTERFOIL__LEASE_MS", "1")
        .env("COUNTERFOIL_idempotency__lease_ms", "1")
        .refused(&[
            "COUNTERFOIL_IDEMPOTENCY__LEAS_MS: is not a setting; did you mean `COUNTERFOIL_IDEMPOTENCY__LEASE_MS`?",
            "COUNTERFOIL_IDEMPOTENSY__LEASE_MS: is not a setting; did you mean `COUNTERFOIL_IDEMPOTENCY__LEASE_MS`?",
            "COUNTERFOIL_ZEBRA__CROSSING: is not a setting; the sections are server, store, idempotency, gateway, peering, redis, outbox, limits, log, peers.",
            "COUNTERFOIL__LEASE_MS: is not a setting; did you mean `COUNTERFOIL_IDEMPOTENCY__LEASE_MS`?",
            "COUNTERFOIL_idempotency__lease_ms: is not a setting; did you mean `COUNTERFOIL_IDEMPOTENCY__LEASE_MS`?",
        ]);
}

#[test]
fn a_flag_for_a_setting_that_does_not_exist_is_refused() {
    nothing()
        .flag("--lease", "idempotency", "leas_ms", "1")
        .refused(&["--lease: `idempotency.leas_ms` is not a setting; did you mean `idempotency.lease_ms`?"]);
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let gone = File("/nowhere/counterfoil.toml".into());
    Given { file: Some(gone), ..Given::default() }
        .refused(&["FILE: the configuration file cannot be read (No such file or directory (os error 2))."]);
    Given { file: Some(File::with(b"\xff")), ..Given::default() }
        .refused(&["FILE: the configuration file is not UTF-8 text."]);
    Given { file: Some(File::with(&vec![b'#'; 1024 * 1024 + 1])), ..Given::default() }
        .refused(&["FILE: the configuration file is larger than 1048576 bytes."]);
}

#[test]
fn broken_toml_is_refused_with_line_and_column() {
    for (text, place) in [
        ("[idempotency]\nlease_ms = \n", "FILE:2:12"),
        ("[idempotency\nlease_ms = 500\n", "FILE:1:13"),
        ("[idempotency]\nlease_ms 500\n", "FILE:2:10"),
        ("[log]\nlevel = \"ä\" x\n", "FILE:2:13"),
        ("[log]\nlevel = \"\"\"\n", "FILE:3:1"),
    ] {
        let problems = file(text).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with(&format!("{place}: this is not valid TOML (")),
            "{text}\n{problems:?}"
        );
    }
}

#[test]
fn a_key_given_twice_is_refused() {
    file("[idempotency]\nlease_ms = 500\nlease_ms = 600\n")
        .refused(&["FILE:3:1: `lease_ms` is given twice; remove one."]);
    file("[log]\nlevel = \"info\"\n[log]\n").refused(&["FILE:3:2: `log` is given twice; remove one."]);
}

#[test]
fn a_weaker_bad_value_is_refused_even_if_overruled() {
    file("[outbox]\npoll_ms = 9\n")
        .flag("--poll-ms", "outbox", "poll_ms", "10")
        .refused(&["FILE:2:11: `outbox.poll_ms` must be a whole number from 10 to 600000, not `9`."]);
}

#[test]
fn all_problems_are_listed_at_once() {
    file("[server]\ndrain_ms = 30_000\ndrain_ms = 1\n[outbox]\nbatch = 0\n[zebra]\n")
        .env("COUNTERFOIL_LOG__FORMAT", "xml")
        .env("COUNTERFOIL_LOG__FROMAT", "json")
        .flag("--listen", "server", "listen", "localhost")
        .refused(&[
            "FILE:2:12: `server.drain_ms` must be a whole number from 0 to 29999, not `30000`.",
            "FILE:3:1: `drain_ms` is given twice; remove one.",
            "FILE:5:9: `outbox.batch` must be a whole number from 1 to 1000, not `0`.",
            "FILE:6:2: `zebra` is not a section; the sections are server, store, idempotency, gateway, peering, redis, outbox, limits, log, peers.",
            "COUNTERFOIL_LOG__FORMAT: `log.format` must be `text`, `json` or `auto`, not `xml`.",
            "COUNTERFOIL_LOG__FROMAT: is not a setting; did you mean `COUNTERFOIL_LOG__FORMAT`?",
            "--listen: `server.listen` must be an IP address and port such as `127.0.0.1:8080` or `[::1]:8080`, not `localhost`.",
        ]);
}

#[test]
fn a_contradiction_is_listed_with_the_other_problems() {
    file("[idempotency]\nheartbeat_ms = 40_000\nwait_ms = -1\n").refused(&[
        "FILE:2:16: `idempotency.heartbeat_ms` is 40000 but must be less than `idempotency.lease_ms`, which is 30000 (default).",
        "FILE:3:11: `idempotency.wait_ms` must be a whole number from 0 to 60000, not `-1`.",
    ]);
}
