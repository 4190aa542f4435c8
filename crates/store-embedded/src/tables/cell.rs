//! Decodes columns as types of the core. An undecodable value is damage, never a default.

use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};

pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Time> {
    row.get(column).map(Time::from_ms)
}

pub(super) fn charge(row: &Row<'_>, column: usize) -> Result<ChargeId> {
    row.get(column).map(ChargeId::from_i64)
}

pub(super) fn operation(row: &Row<'_>, column: usize) -> Result<OperationId> {
    row.get(column).map(OperationId::from_i64)
}

pub(super) fn tenant(row: &Row<'_>, column: usize) -> Result<TenantId> {
    row.get(column).map(TenantId::from_i64)
}

pub(super) fn account(row: &Row<'_>, column: usize) -> Result<AccountId> {
    row.get(column).map(AccountId::from_i64)
}

pub(super) fn transaction(row: &Row<'_>, column: usize) -> Result<TransactionId> {
    row.get(column).map(TransactionId::from_i64)
}

pub(super) fn hold(row: &Row<'_>, column: usize) -> Result<HoldId> {
    row.get(column).map(HoldId::from_i64)
}

pub(super) fn subject(row: &Row<'_>, column: usize) -> Result<SubjectId> {
    row.get(column).map(SubjectId::from_i64)
}

pub(super) fn position(row: &Row<'_>, column: usize) -> Result<Position> {
    row.get(column).map(Position)
}

pub(super) fn asset(row: &Row<'_>, column: usize) -> Result<Asset> {
    word(row, column, |code| Asset::parse(code).ok())
}

pub(super) fn digest(row: &Row<'_>, column: usize) -> Result<Digest> {
    row.get(column).map(Digest::from_bytes)
}

pub(super) fn ulid(row: &Row<'_>, column: usize) -> Result<Ulid> {
    row.get(column).map(Ulid::from_bytes)
}

/// A text column that `parse` accepts.
pub(super) fn word<T>(row: &Row<'_>, column: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
    let text = row
        .get_ref(column)?
        .as_str()
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Text, error.into()))?;
    parse(text).ok_or_else(|| damaged(column, Type::Text))
}

/// As [`word`], for a nullable column.
pub(super) fn optional_word<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    if row.get_ref(column)?.data_type() == Type::Null {
        return Ok(None);
    }
    word(row, column, parse).map(Some)
}

pub(super) fn damaged(column: usize, kind: Type) -> Error {
    Error::FromSqlConversionFailure(column, kind, "the stored value is none this release writes".into())
}
