//! Assets: the currencies of ISO 4217 with their exponents, as data, and the codes of tenants' own
//! assets.

use super::limits::ASSET_CODE_BYTES_MAX;
use std::fmt;

/// A currency by its upper-case ISO 4217 code, or a tenant's own asset (points, carbon credits,
/// grams of CO2). The code is padded with zero bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asset([u8; ASSET_CODE_BYTES_MAX]);

/// A code that is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAsset;

/// Active ISO 4217 codes, grouped by the number of decimals of their minor unit.
const CURRENCIES: [(u8, &str); 4] = [
    (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    (
        2,
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF \
         CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL \
         HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU \
         MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR \
         SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED \
         VES WST XCD XCG YER ZAR ZMW ZWG",
    ),
    (3, "BHD IQD JOD KWD LYD OMR TND"),
    (4, "CLF UYW"),
];

impl Asset {
    /// Parses a currency's code in any case.
    pub fn currency(code: &str) -> Result<Asset, UnknownAsset> {
        let asset = Asset::parse(code)?;
        asset.currency_exponent().map(|_| asset).ok_or(UnknownAsset)
    }

    /// Parses an asset's code in any case: a letter, then letters, digits and `_`, at most 16
    /// characters.
    pub fn parse(code: &str) -> Result<Asset, UnknownAsset> {
        let fits = code.len() <= ASSET_CODE_BYTES_MAX
            && code.starts_with(|first: char| first.is_ascii_alphabetic())
            && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !fits {
            return Err(UnknownAsset);
        }
        let mut bytes = [0; ASSET_CODE_BYTES_MAX];
        for (place, byte) in bytes.iter_mut().zip(code.bytes()) {
            *place = byte.to_ascii_uppercase();
        }
        Ok(Asset(bytes))
    }

    /// The upper-case code.
    pub fn code(&self) -> &str {
        let length = self.0.iter().take_while(|byte| **byte != 0).count();
        self.0.get(..length).and_then(|code| std::str::from_utf8(code).ok()).unwrap_or_default()
    }

    /// The number of decimals of the minor unit, if this is a currency.
    pub fn currency_exponent(&self) -> Option<u8> {
        // Codes are four bytes apart in the table: three letters and a space.
        let code: &[u8; 3] = self.code().as_bytes().try_into().ok()?;
        let stands_in =
            |codes: &str| codes.as_bytes().chunks(4).any(|place| place.first_chunk() == Some(code));
        CURRENCIES.iter().find(|(_, codes)| stands_in(codes)).map(|(exponent, _)| *exponent)
    }
}

impl fmt::Debug for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currency_exponents_come_from_the_table() {
        for (code, exponent) in [("usd", 2), ("JPY", 0), ("kwd", 3), ("CLF", 4), ("Eur", 2), ("BHD", 3)] {
            assert_eq!(Asset::currency(code).unwrap().currency_exponent(), Some(exponent), "{code}");
        }
    }

    #[test]
    fn unknown_codes_are_refused() {
        for code in ["", "US", "USDX", "XXX", "U D", "u\u{0}d", "ÿÿ", "   ", "ZZZ"] {
            assert_eq!(Asset::currency(code), Err(UnknownAsset), "{code}");
        }
    }

    #[test]
    fn a_tenant_may_name_its_own_assets() {
        for (text, code) in
            [("points", "POINTS"), ("CO2_grams", "CO2_GRAMS"), ("a123456789012345", "A123456789012345")]
        {
            assert_eq!(Asset::parse(text).unwrap().code(), code);
            assert_eq!(Asset::parse(text).unwrap().currency_exponent(), None);
        }
        for text in ["", "1UP", "_A", "A-B", "A B", "a1234567890123456", "\u{0}", "A\u{0}"] {
            assert_eq!(Asset::parse(text), Err(UnknownAsset), "{text}");
        }
    }

    #[test]
    fn no_currency_code_occurs_twice() {
        let mut codes: Vec<&str> =
            CURRENCIES.iter().flat_map(|(_, codes)| codes.split_whitespace()).collect();
        let all = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all);
        assert!(codes.iter().all(|code| code.len() == 3));
        assert!(CURRENCIES.iter().all(|(_, codes)| codes.split(' ').all(|code| code.len() == 3)));
    }
}
