//! Claims only move forward, and the columns of claims and of their work are consistent.

use crate::{filled, refused};

#[tokio::test]
async fn claims_only_move_forward() {
    let (db, _database) = filled().await;
    for (change, subject) in [
        ("fence = 0, revision = revision + 1", 3),
        ("revision = 0", 3),
        ("attempts = 9", 3),
        ("subject = 9, revision = revision + 1, fence = 9", 3),
        ("id = sha256('x'), revision = revision + 1", 3),
        ("tenant = 9, revision = revision + 1", 3),
        ("state = 'expired', tombstone_until = 1, revision = revision + 1", 3),
        ("state = 'in_flight', holder = 1, lease_until = 1, lease_ceiling = 1, revision = revision + 1", 1),
        ("body = 'other', revision = revision + 1", 1),
        ("subject = 9, revision = revision + 1", 1),
    ] {
        let sql = format!("UPDATE claims SET {change} WHERE subject = {subject}");
        refused(&db, &sql, "only moves forward").await;
    }
    refused(&db, "DELETE FROM claims WHERE subject = 3", "never removed").await;
    refused(
        &db,
        "UPDATE claims SET state = 'completed', revision = revision + 1 WHERE subject = 3",
        "state_has_its_columns",
    )
    .await;
    // The moves of the engine are allowed: expiry, a new claim under a higher fence, the sweep.
    for sql in [
        "UPDATE claims SET state = 'expired', body = NULL, revision = revision + 1 WHERE subject = 1",
        "UPDATE claims SET subject = 9, fence = fence + 1, revision = revision + 1 WHERE subject = 1",
        "DELETE FROM claims WHERE subject = 9",
    ] {
        assert_eq!(db.execute(sql, &[]).await.unwrap(), 1, "{sql}");
    }
}

const LEASE: &str = "holder = 1, lease_until = 1, lease_ceiling = 1";
const ANSWER: &str =
    "replay_until = 1, tombstone_until = 1, sweep_at = 1, status = 1, media = 'm', body = 'b'";

/// Every state of a claim with its required columns.
const STATES: [(&str, &str); 6] = [
    ("in_flight", LEASE),
    ("failed_retry", "not_before = 1"),
    ("uncertain", "holder = 1, lease_until = 1, lease_ceiling = 1, not_before = NULL"),
    ("completed", ANSWER),
    ("failed_terminal", ANSWER),
    ("expired", "tombstone_until = 1, body = NULL"),
];

/// Puts the claim into a state, with the rule about moves disabled.
fn made(state: &str, has: &str) -> String {
    format!(
        "ALTER TABLE claims DISABLE TRIGGER only_forward; \
         UPDATE claims SET state = 'in_flight', {LEASE}, not_before = NULL, replay_until = NULL, \
         tombstone_until = NULL, sweep_at = NULL, status = NULL, media = NULL, body = NULL WHERE subject = 3; \
         UPDATE claims SET state = '{state}', {has}, fence = 5, revision = 5 WHERE subject = 3; \
         ALTER TABLE claims ENABLE ALWAYS TRIGGER only_forward"
    )
}

#[tokio::test]
async fn claims_move_between_states_as_the_rule_says() {
    let (db, _database) = filled().await;
    let may = |from: &str, to: &str, is_another: bool, fence_grows: bool| match from {
        "completed" | "failed_terminal" | "expired" if is_another => fence_grows,
        "completed" | "failed_terminal" | "expired" => to == "expired" && from != "expired",
        _ if is_another || to == "expired" => false,
        "failed_retry" => to == "in_flight",
        "uncertain" => !matches!(to, "in_flight" | "failed_retry"),
        _ => true,
    };
    for (from, had) in STATES {
        db.batch_execute(&made(from, had)).await.unwrap();
        for ((to, has), subject, fence) in STATES
            .iter()
            .flat_map(|to| [(3, 5), (3, 6), (9, 5), (9, 6)].map(|(subject, fence)| (to, subject, fence)))
        {
            let sql = format!(
                "BEGIN; UPDATE claims SET state = '{to}', {has}, subject = {subject}, fence = {fence}, \
                 revision = 6 WHERE subject = 3; ROLLBACK"
            );
            if may(from, to, subject == 9, fence == 6) {
                db.batch_execute(&sql).await.unwrap();
            } else {
                refused(&db, &sql, "only moves forward").await;
            }
        }
        for back in ["fence = 4, revision = 6", "revision = 5"] {
            let sql = format!("BEGIN; UPDATE claims SET {back} WHERE subject = 3; ROLLBACK");
            refused(&db, &sql, "only moves forward").await;
        }
    }
}

#[tokio::test]
async fn only_settled_claims_with_a_sweep_time_are_removed() {
    let (db, _database) = filled().await;
    let remove = "BEGIN; DELETE FROM claims WHERE subject = 3; ROLLBACK";
    for (state, has) in STATES {
        let is_settled = matches!(state, "completed" | "failed_terminal" | "expired");
        let looked_at =
            if has.contains("sweep_at") { has.to_owned() } else { format!("{has}, sweep_at = 1") };
        db.batch_execute(&made(state, &looked_at)).await.unwrap();
        if is_settled {
            db.batch_execute(remove).await.unwrap();
        } else {
            refused(&db, remove, "never removed").await;
        }
        if !has.contains("sweep_at") {
            db.batch_execute(&made(state, has)).await.unwrap();
            refused(&db, remove, "never removed").await;
        }
    }
}

/// Until its tombstone ends, a settled key is neither deleted nor claimed again, so no second
/// charge can happen under it.
#[tokio::test]
async fn a_settled_claim_is_kept_until_its_tombstone_ends() {
    let (db, _database) = filled().await;
    let remove = "BEGIN; DELETE FROM claims WHERE subject = 3; ROLLBACK";
    let reuse = format!(
        "BEGIN; UPDATE claims SET state = 'in_flight', {LEASE}, subject = 9, fence = 6, revision = 6 \
         WHERE subject = 3; ROLLBACK"
    );
    let settled = STATES.iter().filter(|(_, has)| has.contains("tombstone_until"));
    for (state, has) in settled {
        let has = if has.contains("sweep_at") { (*has).to_owned() } else { format!("{has}, sweep_at = 1") };
        let until = |moment: &str| has.replace("tombstone_until = 1", &format!("tombstone_until = {moment}"));
        for kept in ["now_ms() + 86400000", "now_ms() + 70000", "9223372036854775807"] {
            db.batch_execute(&made(state, &until(kept))).await.unwrap();
            refused(&db, remove, "kept until its tombstone ends").await;
            refused(&db, &reuse, "only moves forward").await;
        }
        // Processes may run slightly ahead of the server's clock.
        for over in ["now_ms() - 1", "now_ms() + 30000"] {
            db.batch_execute(&made(state, &until(over))).await.unwrap();
            db.batch_execute(remove).await.unwrap();
            db.batch_execute(&reuse).await.unwrap();
        }
    }
    // The last commit's time counts if the server's clock was set back.
    let ahead = "UPDATE head SET at = now_ms() + 86400000";
    db.batch_execute(ahead).await.unwrap();
    db.batch_execute(&made("expired", "tombstone_until = now_ms() + 80000000, sweep_at = 1, body = NULL"))
        .await
        .unwrap();
    db.batch_execute(remove).await.unwrap();
}

#[tokio::test]
async fn inconsistent_rows_are_refused() {
    let (db, _database) = filled().await;
    let mut claims = vec![
        "state = 'lost'".to_owned(),
        "state = 'failed_retry', not_before = NULL".to_owned(),
        "state = 'uncertain', not_before = 1, holder = 1, lease_until = NULL, lease_ceiling = NULL"
            .to_owned(),
        "state = 'expired', tombstone_until = NULL".to_owned(),
        "state = 'expired', tombstone_until = 1, body = 'b'".to_owned(),
    ];
    for column in ["holder", "lease_until", "lease_ceiling"] {
        for state in ["in_flight", "uncertain"] {
            let lacks = LEASE.replace(&format!("{column} = 1"), &format!("{column} = NULL"));
            claims.push(format!("state = '{state}', not_before = NULL, {lacks}"));
        }
    }
    for column in ANSWER.split(", ") {
        let name = column.split(' ').next().unwrap();
        for state in ["completed", "failed_terminal"] {
            claims.push(format!("state = '{state}', {}", ANSWER.replace(column, &format!("{name} = NULL"))));
        }
    }
    db.batch_execute("ALTER TABLE claims DISABLE TRIGGER only_forward").await.unwrap();
    for change in claims {
        let sql = format!("UPDATE claims SET {change} WHERE subject = 3");
        refused(&db, &sql, "state_has_its_columns").await;
    }
    for column in ["fence", "revision", "attempts"] {
        let sql = format!("UPDATE claims SET {column} = -1 WHERE subject = 3");
        refused(&db, &sql, "counts_begin_at_zero").await;
    }
    db.batch_execute("ALTER TABLE outbox DISABLE TRIGGER only_forward, DISABLE TRIGGER as_made")
        .await
        .unwrap();
    for column in ["step", "generation", "idle_calls", "server_errors", "revision"] {
        let sql = format!("UPDATE outbox SET {column} = -1 WHERE id = 7");
        refused(&db, &sql, "counts_begin_at_zero").await;
    }
    for (change, words) in [
        ("flow = 'guess'", "outbox_flow_check"),
        ("way = 'up'", "outbox_way_check"),
        ("version = 0", "outbox_version_check"),
        ("claim = 'short'", "outbox_claim_check"),
    ] {
        refused(&db, &format!("UPDATE outbox SET {change} WHERE id = 7"), words).await;
    }
    for (sums, words) in [("captured = -1", "given_back"), ("refunded = -1, captured = 0", "given_back")] {
        let columns = "id, tenant, amount_minor, asset, payment_method, capture, destination, metadata, status, provider, endpoint, \
            captured, refunded, refunding, created_at, revision";
        let sql = format!(
            "ALTER TABLE charges DISABLE TRIGGER only_forward; INSERT INTO charges ({columns}) VALUES \
             (51, 1, 50, 'USD', 'pm', true, 9, '{{}}', 'processing', 'p', 'e', 0, 0, 0, 1, 1); UPDATE charges SET {sums} WHERE id = 51"
        );
        refused(&db, &sql, words).await;
    }
}
