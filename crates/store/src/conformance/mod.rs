//! The conformance suite: one set of named cases for every store.
//!
//! A case is an async function over an empty store. Its name states the promise, and a panic means
//! that the store breaks it. [`conformance_suite!`](crate::conformance_suite) makes one test of
//! each case. [`conformance_in_doubt!`](crate::conformance_in_doubt) adds cases for stores whose
//! commits can be made doubtful. [`fixtures`] and [`variants`] build valid rows and also serve the
//! tests of other crates.
//!
//! The suite omits promises beyond the port: durability, restarts, files.

#![allow(clippy::expect_used, reason = "a broken promise must stop the case")]

mod ask;
pub mod balances;
pub mod bounds;
pub mod claims;
pub mod clock;
pub mod doubt;
pub mod due;
pub mod feed;
pub mod fixtures;
pub mod groups;
pub mod journal;
pub mod moves;
pub mod preconditions;
pub mod rows;
pub mod scans;
pub mod tally;
pub mod variants;

pub use doubt::Doubtful;

/// Makes a test of every case, each on its own store.
///
/// The argument is the path of an `async fn() -> (Arc<impl Store>, Guard)`, or of a function that
/// returns such a future. The guard (a directory, a database) is dropped after the store. The
/// calling crate needs `tokio` with `macros` and `rt-multi-thread`.
#[macro_export]
macro_rules! conformance_suite {
    ($fresh:path) => {
        $crate::conformance_tests! {
            $fresh;
            rows {
                claims_read_back_in_every_state,
                reply_bytes_read_back_unchanged,
                charges_read_back_in_every_variant,
                operations_read_back_in_every_variant,
                payouts_read_back_in_every_variant,
                outbox_rows_read_back_in_every_variant,
                audit_records_read_back_in_every_kind,
                tenants_keys_and_slots_read_back,
                accounts_names_and_assets_read_back_in_every_variant,
                balances_read_back_as_they_begin,
                transactions_and_reversals_read_back_in_every_variant,
                holds_read_back_in_every_state,
                snapshots_read_back_to_the_edges_of_their_sums,
                a_cursor_reads_back_at_every_position,
                replaced_rows_read_back_as_last_written,
                rows_come_in_the_order_asked,
                rows_of_different_kinds_may_share_an_id,
                another_tenants_id_finds_nothing,
                nothing_is_read_from_an_empty_store,
                the_secret_stays_the_same,
            }
            preconditions {
                an_insertion_finds_the_existing_row,
                a_replacement_of_nothing_is_refused,
                a_replacement_of_another_revision_finds_the_row,
                a_revision_must_grow,
                a_removal_of_nothing_is_refused,
                a_removal_of_another_revision_finds_the_row,
                a_removed_row_is_gone_and_may_come_again,
                history_is_never_removed,
            }
            claims {
                every_legal_move_commits,
                an_illegal_move_is_refused,
                a_claim_never_forgets_its_past,
                a_free_key_is_claimed_again,
                a_replayable_answer_is_not_claimed_over,
                a_key_in_flight_is_not_claimed_again,
                only_a_settled_claim_whose_time_ends_is_removed,
                a_hundred_claims_on_one_key_have_one_winner,
                a_hundred_takeovers_have_one_winner,
            }
            moves {
                a_settled_charge_never_moves_back,
                captured_and_refunded_sums_never_fall,
                an_operation_ends_once_and_keeps_its_order,
                a_payout_ends_once_and_keeps_its_order,
                an_abandoned_generation_returns_only_with_another_step,
                an_open_charge_may_take_any_status,
                an_order_is_fixed,
                a_row_never_changes_its_tenant,
                work_stays_with_its_payment_and_its_provider,
                a_generation_never_falls,
                a_revoked_key_stays_revoked,
                a_name_keeps_its_tenant,
                a_slot_epoch_never_falls,
                an_account_changes_only_its_spread,
                a_code_is_taken_once,
                an_asset_is_defined_once,
                a_hold_ends_once,
                a_cursor_never_goes_back,
            }
            groups {
                a_refused_set_leaves_nothing,
                the_first_refused_change_is_named,
                an_empty_set_is_malformed,
                a_hundred_changes_are_malformed,
                ninety_nine_changes_commit,
                a_row_named_twice_is_malformed,
                inserts_replaces_and_removals_travel_together,
                one_refusal_never_fails_its_neighbours,
                reads_never_see_half_a_set,
            }
            balances {
                a_move_creates_an_unwritten_shard,
                an_unwritten_shard_refuses_moves_beyond_its_empty_bounds,
                a_debit_below_the_floor_finds_the_balance,
                a_credit_above_the_cap_finds_the_balance,
                more_than_is_held_is_not_released,
                holds_count_against_floor_and_cap,
                the_whole_delta_is_judged_and_not_its_parts,
                a_balance_beyond_its_bound_may_move_back,
                sums_that_do_not_fit_are_refused_and_never_wrap,
                bounds_at_the_edges_of_64_bits_are_kept,
                parts_of_a_bound_move_between_shards,
                moves_of_one_group_see_each_other,
                two_hundred_debits_stop_at_the_floor,
                two_hundred_credits_stop_at_the_cap,
                a_refused_move_leaves_nothing_of_its_set,
                a_refused_move_leaves_its_neighbours_alone,
                a_balance_changes_only_by_moving,
                a_revision_counts_the_moves,
                a_shard_moves_once_in_a_set,
                money_is_never_seen_twice_or_nowhere,
            }
            journal {
                an_empty_store_has_no_entries,
                entries_of_an_account_newest_first,
                entries_of_an_account_oldest_first_after_a_position,
                pages_stay_stable_while_entries_come,
                an_unknown_mark_gives_an_empty_page,
                entries_of_one_set_are_ordered_by_id_and_leg,
                every_leg_is_an_entry_of_its_account,
                a_refused_set_enters_nothing,
                a_fold_begins_after_a_position_and_ends_at_a_point,
                a_fold_up_to_a_time_goes_by_the_commit,
                a_fold_is_the_sum_of_its_entries,
                sums_beyond_64_bits_are_exact,
                a_transaction_is_never_replaced_or_removed,
                a_transaction_is_undone_once,
                snapshots_up_to_a_point_newest_first,
                a_snapshot_is_never_changed_but_may_be_removed,
            }
            due {
                work_is_due_when_its_time_has_come,
                the_most_overdue_comes_first,
                parked_work_is_never_due,
                moved_work_is_due_at_its_new_time,
                removed_work_is_not_due,
                claims_are_due_when_their_window_is_over,
                holds_are_due_at_their_deadline_and_not_after_their_end,
                a_due_list_is_as_long_as_asked,
            }
            feed {
                positions_are_dense_from_one,
                the_feed_reports_touched_rows,
                the_feed_reports_every_kind_of_row,
                the_feed_goes_on_after_a_position,
                a_refused_set_is_not_in_the_feed,
                a_commit_is_known_by_its_set,
                concurrent_commits_have_one_order,
            }
            scans {
                charges_of_a_tenant_newest_first,
                pages_stay_stable_while_charges_come,
                a_timeline_is_one_charge_in_order,
                claims_each_once,
                all_charges_and_all_work,
                operations_by_charge_by_tenant_and_all,
                payouts_newest_first_of_a_tenant_and_all,
                parked_work_of_a_tenant_newest_first,
                doubt_on_a_payment_of_any_tenant,
                accounts_newest_first_of_a_tenant_and_all,
                transactions_newest_first_of_a_tenant_and_all,
                assets_of_a_tenant_by_code,
                balances_by_account_and_shard,
                holds_by_id,
                tenants_keys_and_slots_in_order,
                a_scan_returns_the_last_state,
            }
            tally {
                an_empty_store_has_no_work,
                work_is_counted,
                a_minute_late_is_not_stuck_yet,
            }
            clock {
                time_never_goes_back,
                receipts_carry_the_store_time,
            }
            bounds {
                scans_stop_at_their_bound,
                ledger_scans_stop_at_their_bound,
                due_lists_stop_at_their_bound,
                the_feed_stops_at_its_bound,
                a_limit_of_zero_returns_nothing,
            }
        }
    };
}

/// Makes a test of every case that needs a commit in doubt. The argument is like that of
/// `conformance_suite!`; the store must be [`Doubtful`](crate::conformance::Doubtful).
#[macro_export]
macro_rules! conformance_in_doubt {
    ($fresh:path) => {
        $crate::conformance_tests! {
            $fresh;
            doubt {
                a_doubtful_commit_that_happened_is_known_by_its_set,
                a_doubtful_commit_that_did_not_happen_may_be_tried_again,
                a_repeated_doubtful_commit_finds_its_own_row,
                a_doubtful_commit_is_in_the_feed_once_or_never,
                a_doubtful_move_happens_once_or_never,
            }
        }
    };
}

/// The expansion of both suites.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($fresh:path; $($group:ident { $($case:ident),* $(,)? })*) => {$(
        mod $group {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (store, guard) = $fresh().await;
                    $crate::conformance::$group::$case(&store).await;
                    drop(store);
                    drop(guard);
                }
            )*
        }
    )*};
}

#[cfg(test)]
mod tests {
    /// A case outside the suites would never run.
    #[test]
    fn every_case_is_in_a_suite() {
        let suites = include_str!("mod.rs");
        for file in [
            include_str!("balances.rs"),
            include_str!("bounds.rs"),
            include_str!("claims.rs"),
            include_str!("clock.rs"),
            include_str!("doubt.rs"),
            include_str!("due.rs"),
            include_str!("feed.rs"),
            include_str!("groups.rs"),
            include_str!("journal.rs"),
            include_str!("moves.rs"),
            include_str!("preconditions.rs"),
            include_str!("rows.rs"),
            include_str!("scans.rs"),
            include_str!("tally.rs"),
        ] {
            let cases: Vec<&str> = file
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn "))
                .filter_map(|rest| rest.split('<').next())
                .collect();
            assert!(!cases.is_empty());
            for case in cases {
                assert!(suites.contains(&format!("                {case},\n")), "{case} is in no suite");
            }
        }
    }
}
