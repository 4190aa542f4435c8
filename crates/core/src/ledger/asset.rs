//! Tenants' own assets. Currencies have no rows; a table defines them.

use crate::types::asset::Asset;
use crate::types::id::TenantId;
use crate::types::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssetDefinition {
    pub tenant: TenantId,
    /// The code, different from every currency's.
    pub asset: Asset,
    /// The number of decimals of the minor unit.
    pub exponent: u8,
    pub created_at: Time,
}
