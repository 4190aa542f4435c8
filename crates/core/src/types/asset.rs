//! Assets: currencies of ISO 4217 with their exponents, as data.

use std::fmt;

/// A currency, by its upper-case ISO 4217 code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asset([u8; 3]);

/// A code that is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAsset;

/// Active ISO 4217 codes with a minor unit, grouped by how many decimals that unit has.
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
    /// A code in any case.
    pub fn parse(code: &str) -> Result<Asset, UnknownAsset> {
        let bytes: [u8; 3] = code.as_bytes().try_into().map_err(|_| UnknownAsset)?;
        let asset = Asset(bytes.map(|byte| byte.to_ascii_uppercase()));
        asset.lookup().map(|_| asset).ok_or(UnknownAsset)
    }

    /// The upper-case code.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// How many decimals the minor unit has.
    pub fn exponent(&self) -> u8 {
        self.lookup().unwrap_or(0)
    }

    /// Codes stand four bytes apart in the table: three letters and a space.
    fn lookup(self) -> Option<u8> {
        let stands_in =
            |codes: &str| codes.as_bytes().chunks(4).any(|place| place.first_chunk() == Some(&self.0));
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
    fn exponents_by_data() {
        for (code, exponent) in [("usd", 2), ("JPY", 0), ("kwd", 3), ("CLF", 4), ("Eur", 2), ("BHD", 3)] {
            assert_eq!(Asset::parse(code).unwrap().exponent(), exponent, "{code}");
        }
    }

    #[test]
    fn unknown_codes_are_refused() {
        for code in ["", "US", "USDX", "XXX", "U D", "u\u{0}d", "ÿÿ", "   ", "ZZZ"] {
            assert_eq!(Asset::parse(code), Err(UnknownAsset), "{code}");
        }
    }

    #[test]
    fn no_code_stands_twice() {
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
