//! Seeded random numbers: the same seed gives the same numbers.

pub use counterfoil_prng::Prng as Chance;

/// The stream of a place within a seed.
pub fn chance_at(seed: u64, place: &[usize]) -> Chance {
    let words = place.iter().map(|word| u64::try_from(*word).unwrap_or(u64::MAX));
    Chance::at(&[seed].into_iter().chain(words).collect::<Vec<_>>())
}
