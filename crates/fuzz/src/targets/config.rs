//! Configuration: any file and any variables give settings or a list of problems, and no problem
//! shows a credential.

use crate::config::{Override, Settings};
use crate::target::{Check, Kind, Target, texts};

pub(super) const TARGET: Target = Target {
    name: "config",
    seeds,
    words: &[
        "[server]\n",
        "[store]\n",
        "[gateway]\n",
        "[idempotency]\n",
        "[log]\n",
        "[[a]]\n",
        "listen = ",
        "url = ",
        "\"127.0.0.1:8080\"",
        "\"embedded:./data\"",
        "\"postgres://u:p@h/db\"",
        "\"stripe+https://sk_live_1@api.stripe.com\"",
        "\"30s\"",
        "\"24h\"",
        "0x10",
        "1_000",
        "-1",
        "1.5",
        "true",
        "nan",
        "1979-05-27",
        "'''",
        "\"\"\"",
        "#",
        "=",
        "\n",
        "\0",
        "COUNTERFOIL_",
        "COUNTERFOIL_SERVER__LISTEN=",
        "COUNTERFOIL_GATEWAY__URL=stripe+https://sk_live_1@h",
        "__",
        "a.b.c = 1\n",
        "{ a = 1 }",
        "[1, 2]",
    ],
    length_max: 4_096,
    short: 4_000,
    start,
};

/// Inserted into values that may hold a credential.
const CREDENTIAL: &str = "9SECRET9";

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "[server]\nlisten = \"127.0.0.1:8080\"\n",
        "[gateway]\nurl = \"stripe+https://sk_live_1@api.stripe.com\"\ntimeout = \"30s\"\n",
        "[server]\nlisten = 1\nlisten = 2\n",
        "[server\n",
        "x = 1\0COUNTERFOIL_SERVER__LISTEN=nonsense\nCOUNTERFOIL_LOG__FORMAT=json",
        "\0COUNTERFOIL_GATEWAY__URL=stripe+https://sk_live_1@h/\nCOUNTERFOIL_X__Y=1",
    ]);
    // One file per setting.
    let settings = Settings::load(None, std::iter::empty(), Vec::new());
    assert!(settings.is_ok(), "the defaults agree");
    for line in crate::config::reference().lines().filter(|line| line.contains('.')) {
        let word =
            line.split(|character: char| !(character.is_ascii_lowercase() || "._".contains(character)));
        for (section, name) in word.filter_map(|word| word.split_once('.')) {
            seeds.push(format!("[{section}]\n{name} = \"1\"\n").into_bytes());
            seeds.push(format!("[{section}]\n{name} = 1\n").into_bytes());
        }
    }
    seeds.sort();
    seeds.dedup();
    seeds
}

fn start() -> Check {
    let folder = tempfile::tempdir_in(memory()).expect("a folder");
    let path = folder.path().join("counterfoil.toml");
    Box::new(move |input| {
        // The path's directory lives as long as the check.
        let _kept = &folder;
        let (file, variables) = match input.iter().position(|byte| *byte == 0) {
            Some(end) => (&input[..end], String::from_utf8_lossy(&input[end + 1..])),
            None => (input, "".into()),
        };
        std::fs::write(&path, file).expect("the file is written");
        let pairs = variables.lines().filter_map(|line| line.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let flag = variables.lines().next_back().unwrap_or_default().to_owned();
        let over = Override { section: "server", name: "listen", value: flag, source: "--listen" };
        let over = if variables.contains("--") { vec![over] } else { Vec::new() };
        keeps_credentials(&variables);
        match Settings::load(Some(&path), pairs, over) {
            Ok(settings) => {
                Kind::of(format!("{:?}", settings.source("server.listen").map(std::mem::discriminant)))
            }
            Err(problems) => {
                let text = problems.to_string();
                assert!(!text.trim().is_empty(), "a refusal says what is wrong");
                Kind::of(text.replace(&path.display().to_string(), ""))
            }
        }
    })
}

/// Errors about a broken URL never repeat its credentials.
fn keeps_credentials(text: &str) {
    let middle = text.floor_char_boundary(text.len() / 2);
    let (head, tail) = text.split_at(middle);
    for name in ["COUNTERFOIL_GATEWAY__URL", "COUNTERFOIL_STORE__URL"] {
        let value = format!("{head}{CREDENTIAL}{tail}");
        if let Err(problems) = Settings::load(None, [(name.to_owned(), value)].into_iter(), Vec::new()) {
            let said = problems.to_string();
            assert!(!said.contains(CREDENTIAL), "a credential is shown: {said}");
        }
    }
}

/// A directory in memory, where files cost no disk writes.
pub(super) fn memory() -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}
