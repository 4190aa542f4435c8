//! Writes the results of a bulk request, in the order of the request.

use crate::json;
use crate::problem;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_engine::present::ItemResult;

/// Appends the results of the bulk request with the id `id`.
pub fn write(out: &mut Vec<u8>, id: SubjectId, results: &[ItemResult], references: &References) {
    let posted = results.iter().filter(|result| matches!(result, ItemResult::Posted(_))).count();
    out.reserve(results.len() * 80);
    json::object(out, |all| {
        all.string("id", references.seal(ReferenceKind::Bulk, id.to_i64()).as_str())
            .string("object", "bulk")
            .count("posted", u64::try_from(posted).unwrap_or(u64::MAX))
            .count("refused", u64::try_from(results.len() - posted).unwrap_or(u64::MAX))
            .array("results", results.iter().enumerate(), |out, (index, result)| {
                json::object(out, |one| write_one(one, index, result, references));
            });
    });
}

fn write_one(one: &mut json::Object<'_>, index: usize, result: &ItemResult, references: &References) {
    match result {
        ItemResult::Posted(transaction) => {
            let id = references.seal(ReferenceKind::Transaction, transaction.id.to_i64());
            one.string("status", "posted").string("transaction", id.as_str());
        }
        ItemResult::Refused(refusal) => {
            one.string("status", "refused").string("error", refusal.name());
        }
        ItemResult::Invalid(flaws) => {
            // Pointers lead into the body of the whole request, as in all errors.
            let placed = flaws.iter().map(|flaw| {
                Flaw::new(format!("/transactions/{index}{}", flaw.pointer), flaw.message.as_str())
            });
            one.string("status", "invalid");
            problem::write_errors(one, placed);
        }
    }
}
