//! Rules that were given fewer words: while servers go on, as often as it is broken off, and every row that is there is looked at.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::opening;
use counterfoil_store::{CommitError, Store};
use counterfoil_store_postgres::{Reach, VERSION, migrate};
use support::{fresh, raw};

/// Rules of the store's tables that are not known to hold for every row.
const UNPROVEN: &str = "SELECT count(*) FROM pg_constraint JOIN pg_namespace ON pg_namespace.oid = connamespace \
    WHERE nspname = 'counterfoil' AND NOT convalidated";

#[tokio::test]
async fn rules_are_replaced_while_a_server_commits_and_again_after_a_crash() {
    let (store, database) = fresh().await;
    let url = database.url();
    let db = raw(&url).await;
    store.commit(opening(1)).await.unwrap();
    for crash in [
        // Nothing of it was done, as far as the marks tell.
        "DELETE FROM schema_steps WHERE version >= 12",
        // It was broken off after a rule was replaced and before the rows that are there were looked at.
        "DELETE FROM schema_steps WHERE version >= 12; ALTER TABLE outbox DROP CONSTRAINT outbox_way_check, \
         ADD CONSTRAINT outbox_way_check CHECK (way = ANY ('{forward,back}')) NOT VALID",
        // And between two triggers.
        "DELETE FROM schema_steps WHERE version >= 12; DROP TRIGGER only_forward ON charges",
    ] {
        db.batch_execute(crash).await.unwrap();
        let begun = db.query_one("SELECT position FROM head", &[]).await.unwrap();
        let begun: i64 = begun.get(0);
        let busy = async {
            for number in 0..40 {
                let set = opening(begun * 100 + 100 + number);
                // A table that is held for longer than a group waits is no answer: who asks again is told.
                while let Err(error) = store.commit(set.clone()).await {
                    assert_eq!(error, CommitError::Conflict);
                }
            }
        };
        let (migrated, ()) = tokio::join!(migrate(&url, Reach::Newest), busy);
        let migrated = migrated.unwrap();
        assert_eq!(
            (migrated.to, migrated.steps),
            (VERSION, vec!["shorter rules", "look ahead", "groups", "kept"])
        );
        assert_eq!(db.query_one(UNPROVEN, &[]).await.unwrap().get::<_, i64>(0), 0);
        let settled = "UPDATE charges SET status = 'failed', revision = 9 WHERE id = 1; \
            UPDATE charges SET status = 'succeeded', revision = 10 WHERE id = 1";
        let refused = db.batch_execute(settled).await.expect_err("the rule holds");
        assert!(refused.as_db_error().unwrap().message().contains("stays settled"), "{refused}");
    }
}
