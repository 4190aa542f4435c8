use super::*;
use crate::cli::import::read;
use counterfoil_core::types::time::Span;

const GOOD: &str = r#""amount":1250,"currency":"USD","payment_method":"pm_card_visa""#;

fn recipe(route: Route, stable: &[&str], time_field: Option<&str>) -> Recipe {
    Recipe {
        route,
        stable: Stable::declare(route.name(), stable.iter().copied()).unwrap(),
        time_field: time_field.map(str::to_owned),
        width: Width::new(Span::from_ms(86_400_000)),
    }
}

fn gather(recipe: &Recipe, lines: &[String]) -> (Vec<Command>, Vec<(usize, String)>) {
    let (records, mut bad) = read::read(lines.join("\n").as_bytes(), recipe.route.layout());
    let commands = recipe.commands(records, &mut bad);
    (commands, bad.into_iter().map(|bad| (bad.line, bad.reason)).collect())
}

#[test]
fn commands_that_the_server_would_refuse_are_refused_with_every_reason() {
    let recipe = recipe(Route::Charges, &["order_id"], None);
    let (commands, bad) = gather(
        &recipe,
        &[
            format!(r#"{{"order_id":1,{GOOD}}}"#),
            format!("{{{GOOD}}}"),
            r#"{"order_id":2,"amount":12.5,"currency":"XXZ","payment_metod":"pm_card_visa"}"#.into(),
            format!(r#"{{"order_id":3,{GOOD},"metadata":{{"order_id":"3"}}}}"#),
        ],
    );
    assert_eq!(commands.len(), 1);
    let said = |index: usize, words: &[&str]| {
        let (line, reason) = &bad[index];
        assert_eq!(*line, index + 2);
        assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
    };
    said(0, &["`order_id` is missing"]);
    said(1, &["fraction", "currency", "did you mean `payment_method`"]);
    said(2, &["keep one"]);
    assert_eq!(bad.len(), 3);
}

#[test]
fn malformed_times_are_refused() {
    let recipe = recipe(Route::Charges, &["order_id"], Some("at"));
    let line = |at: &str| format!(r#"{{"order_id":1,{GOOD}{at}}}"#);
    let given = ["", r#","at":7"#, r#","at":"2026-01-31""#, r#","at":"yesterday""#];
    let (commands, bad) = gather(&recipe, &given.map(line));
    assert!(commands.is_empty());
    for ((_, reason), word) in bad.iter().zip(["missing", "missing or not text", "RFC 3339", "RFC 3339"]) {
        assert!(reason.contains("`at`") && reason.contains(word), "{reason}");
    }
    assert_eq!(bad.len(), given.len());
}

#[test]
fn equal_stable_fields_with_other_contents_are_refused_and_not_sent() {
    let recipe = recipe(Route::Charges, &["order_id"], None);
    let line = |id: u32, amount: u32| {
        format!(r#"{{"order_id":{id},"amount":{amount},"currency":"USD","payment_method":"pm_card_visa"}}"#)
    };
    let (commands, bad) = gather(&recipe, &[line(1, 5), line(2, 5), line(1, 6), line(2, 5), line(1, 5)]);
    assert_eq!(
        commands.iter().map(|it| (it.line, it.repeated_on.clone())).collect::<Vec<_>>(),
        [(2, vec![4])]
    );
    let lines: Vec<usize> = bad.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 1, 5]);
    assert!(bad[0].1.contains("line 1") && bad[0].1.contains("differs"), "{bad:?}");
}

#[test]
fn times_decide_whether_the_same_fields_are_one_command_or_two() {
    let recipe = recipe(Route::Charges, &["order_id"], Some("at"));
    let line =
        |day: u32, hour: u32| format!(r#"{{"order_id":1,{GOOD},"at":"2026-03-{day:02}T{hour:02}:00:00Z"}}"#);
    let (commands, bad) = gather(&recipe, &[line(1, 0), line(1, 23), line(3, 0)]);
    assert_eq!((commands.len(), bad.len()), (2, 0));
    assert_eq!(commands[0].body, commands[1].body, "the time is not sent");
    let (commands, bad) = gather(&recipe, &[line(1, 23), line(2, 0)]);
    assert_eq!((commands.len(), bad.len()), (0, 2));
    assert!(bad[0].1.contains("one command or two"), "{bad:?}");
}

#[test]
fn declared_fields_unknown_to_the_server_become_metadata_or_are_left_out() {
    let charges = recipe(Route::Charges, &["order_id", "metadata.shop", "vip"], Some("at"));
    let line = format!(
        r#"{{"order_id":1.0,"vip":true,{GOOD},"at":"2026-03-01T00:00:00Z","metadata":{{"shop":"s"}}}}"#
    );
    let (commands, bad) = gather(&charges, &[line]);
    assert_eq!(bad, []);
    let sent = String::from_utf8(commands[0].body.clone()).unwrap();
    assert_eq!(
        sent,
        r#"{"amount":1250,"currency":"USD","metadata":{"order_id":"1","shop":"s","vip":"true"},"payment_method":"pm_card_visa"}"#
    );
    let refunds = recipe(Route::Refunds, &["case"], None);
    let (commands, bad) =
        gather(&refunds, &[r#"{"case":"c-1","charge":"ch_00000000000000000000000000","amount":5}"#.into()]);
    assert_eq!(bad, []);
    assert_eq!(commands[0].body, br#"{"amount":5,"charge":"ch_00000000000000000000000000"}"#);
}
