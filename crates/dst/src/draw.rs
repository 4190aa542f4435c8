//! Drawing a run from a seed. Swarm testing: every seed turns some faults off and chooses its own intensities, so that
//! rare combinations are not drowned by common ones.

use crate::chance::Chance;
use crate::client::{LIVES, OPERATIONS, PAYOUTS_ALIKE};
use crate::faults::{FAULTS, Fault, Odds};
use crate::script::{Ask, Event, Script, Setup, Source, What};
use counterfoil_gateway::ProviderProfile;
use counterfoil_gateway::profile::PROFILES;

/// The run of a seed, on the profile it draws or the one that is wanted.
pub fn draw(seed: u64, wanted: Option<&'static ProviderProfile>) -> Script {
    let mut chance = Chance::at(&[seed, 1_000]);
    let [first, ..] = &PROFILES;
    let profiles: Vec<&'static ProviderProfile> = PROFILES.iter().collect();
    let drawn = chance.pick(&profiles, first);
    let mut setup = setup(seed, wanted.unwrap_or(drawn), &mut chance);
    let mut events = events(&setup, &mut chance);
    let faults = Source::Drawn(odds(&mut chance));
    // Each with a chance of its own: what is added here leaves the rest of a seed's run as it was.
    crowd(&setup, &mut Chance::at(&[seed, 1_001]), &mut events);
    operators(&mut setup, &mut Chance::at(&[seed, 1_002]), &mut events);
    payouts(&setup, &mut Chance::at(&[seed, 1_003]), &mut events);
    hints(&setup, &mut Chance::at(&[seed, 1_004]), &mut events);
    events.sort_by_key(|event| event.at);
    Script { setup, events, faults }
}

/// In every other run there are operators, who settle dead letters while faults strike and afterwards.
fn operators(setup: &mut Setup, chance: &mut Chance, events: &mut Vec<Event>) {
    if chance.percent(50) {
        return;
    }
    setup.operators = 1;
    for _ in 0..chance.pick(&[0, 3, 10], 3) {
        let ask =
            Ask::Resolve { tenant: chance.between(1, 2), letter: chance.below(8), how: chance.below(4) };
        let at = chance.below(setup.end);
        ask_once(setup, chance, events, at, ask);
    }
}

/// Payouts, each asked for again and again: here and there, or many at once from one account.
fn payouts(setup: &Setup, chance: &mut Chance, events: &mut Vec<Event>) {
    let (tenant, first) = (chance.between(1, 2), chance.below(PAYOUTS_ALIKE));
    let at = (setup.end / 2).saturating_add(chance.below(setup.end / 2));
    let burst = chance.percent(40);
    for _ in 0..chance.pick(&[0, 2, 6, 16], 2) {
        let (tenant, key, at) = if burst {
            let other = chance.below(6).saturating_mul(PAYOUTS_ALIKE);
            (tenant, first.saturating_add(other), at.saturating_add(chance.below(4)))
        } else {
            (chance.between(1, 2), chance.below(PAYOUTS_ALIKE), chance.below(setup.end))
        };
        for _ in 0..chance.between(1, 3) {
            let body = u64::from(chance.percent(5));
            let later = at.saturating_add(if burst { chance.below(4) } else { chance.below(2_000) });
            ask_once(setup, chance, events, later, Ask::Payout { tenant, key, body });
        }
    }
}

/// In every other run the provider sends events, mostly soon after somebody asked for something, and about anything: early,
/// late, twice, or out of nowhere.
fn hints(setup: &Setup, chance: &mut Chance, events: &mut Vec<Event>) {
    if chance.percent(50) {
        return;
    }
    let asked: Vec<u64> = events.iter().map(|event| event.at).collect();
    for _ in 0..chance.pick(&[10, 60, 240], 60) {
        let what = What::Hint { process: chance.below(setup.processes), number: chance.below(16) };
        let at = chance.pick(&asked, 0).saturating_add(chance.below(10_000));
        events.push(Event { at: at.min(setup.end), what });
    }
}

fn setup(seed: u64, profile: &'static ProviderProfile, chance: &mut Chance) -> Setup {
    let plain = Setup::plain(seed, profile);
    let processes = chance.between(1, 3);
    let (lease, heartbeat, ceiling) = chance.pick(
        &[(30_000, 10_000, 180_000), (4_000, 1_000, 20_000), (8_000, 60_000, 24_000)],
        (30_000, 10_000, 180_000),
    );
    let (replay, tombstone) = chance.pick(
        &[(86_400_000, 86_400_000), (86_400_000, 86_400_000), (15_000, 10_000)],
        (86_400_000, 86_400_000),
    );
    let drifts = chance.percent(40);
    let mut pace = || if drifts { chance.between(500, 2_000) } else { 1_000 };
    let paces = [pace(), pace(), pace()];
    Setup {
        processes,
        exclusive: processes == 1 && chance.percent(60),
        lease,
        ceiling,
        heartbeat,
        wait: chance.pick(&[5_000, 300], 5_000),
        replay,
        tombstone,
        attempts: chance.pick(&[3, 8, 2], 3),
        breaker: chance.pick(&[1_000, 5], 1_000),
        latency: chance.pick(&[1, 5, 40, 400], 5),
        in_order: false,
        paces,
        end: chance.pick(&[15_000, 30_000, 60_000], 30_000),
        ..plain
    }
}

/// Which faults may happen in this run, and how often.
fn odds(chance: &mut Chance) -> Odds {
    let mut odds = Odds::default();
    let share = chance.pick(&[100, 60, 30, 10], 60);
    for fault in FAULTS {
        if chance.percent(share) {
            odds.kinds.insert(*fault);
        }
    }
    let often = |chance: &mut Chance, list: &[u64]| chance.pick(list, 0);
    odds.per_million = [
        often(chance, &[0, 10_000, 50_000, 200_000]),
        often(chance, &[0, 2_000, 20_000, 100_000]),
        often(chance, &[0, 100_000, 400_000, 800_000]),
        often(chance, &[0, 100_000, 400_000]),
        often(chance, &[0, 500, 2_000, 8_000]),
    ];
    // Lies of the provider end in parking: with many of them little else would be seen.
    if chance.percent(70) {
        for lie in [
            Fault::WrongAmount,
            Fault::WrongCurrency,
            Fault::WrongPayment,
            Fault::WrongCapture,
            Fault::Duplicate,
        ] {
            odds.kinds.remove(&lie);
        }
    }
    odds
}

fn events(setup: &Setup, chance: &mut Chance) -> Vec<Event> {
    let mut events = Vec::new();
    let charges = chance.pick(&[1, 3, 8], 3);
    let ledger = chance.pick(&[0, 12, 36], 12);
    let first_book = chance.below(24);
    let asks = chance.pick(&[10, 30, 60], 30);
    let others = chance.pick(&[0, 5, 20], 5);
    let impatient = chance.pick(&[0, 0, 20], 0);
    let bursts = chance.pick(&[0, 0, 40], 0);
    let mut at = 0;
    for _ in 0..asks {
        if !chance.percent(bursts) {
            at = chance.below(setup.end);
        }
        let body = u64::from(chance.percent(others));
        let ask = match chance.below(10) {
            0 => Ask::Look { number: chance.below(64) },
            1..=5 => Ask::Charge { tenant: chance.between(1, 2), key: chance.below(charges), body },
            _ if ledger == 0 => Ask::Charge { tenant: 1, key: chance.below(charges), body },
            _ => Ask::Keep { key: first_book.saturating_add(chance.below(ledger)), body },
        };
        let patience = chance.percent(impatient).then(|| chance.below(3_000));
        let what = What::Ask { process: chance.below(setup.processes), ask, patience };
        events.push(Event { at, what });
    }
    for _ in 0..chance.pick(&[0, 0, 1, 4], 0) {
        let process = chance.below(setup.processes);
        let what = match chance.below(10) {
            0 | 1 => What::Crash { process, back: chance.between(100, 20_000) },
            2..=4 => What::Pause { process, ms: chance.pick(&[2_000, 35_000, 90_000, 400_000], 35_000) },
            5 => What::Drain { process },
            6 | 7 => What::ProviderDown(chance.between(1_000, 60_000)),
            _ => What::StoreDown(chance.between(100, 70_000)),
        };
        events.push(Event { at: chance.below(setup.end), what });
    }
    // Long sleeps let windows, waits and quiescence end while faults still strike.
    for _ in 0..chance.pick(&[0, 0, 1, 3], 0) {
        let ms = chance.pick(&[40_000, 200_000, 200_000, 4_000_000, 50_000_000], 200_000);
        events.push(Event { at: chance.below(setup.end), what: What::Freeze(ms) });
    }
    lives(setup, chance, &mut events);
    events
}

/// Many charges beside the few that are asked for again and again: what happens to one of them is as likely as before,
/// and the processes' own work is shared by all.
fn crowd(setup: &Setup, chance: &mut Chance, events: &mut Vec<Event>) {
    let size = chance.pick(&[0, 60, 180, 180], 60);
    let within = chance.pick(&[setup.end, setup.end / 4], setup.end);
    for number in 0..size {
        let ask = Ask::Charge { tenant: number % 2 + 1, key: number / 2, body: 0 };
        let mut at = chance.below(within);
        for _ in 0..chance.pick(&[1, 1, 2], 1) {
            ask_once(setup, chance, events, at, ask);
            at = at.saturating_add(chance.below(4_000));
        }
    }
    for number in 0..size / 12 {
        let (tenant, key) = (chance.between(1, 2), LIVES.saturating_add(8).saturating_add(number));
        let at = chance.below(within);
        ask_once(setup, chance, events, at, Ask::Charge { tenant, key, body: 0 });
        operations(setup, chance, events, (tenant, key, at.saturating_add(2_000)));
    }
}

fn ask_once(setup: &Setup, chance: &mut Chance, events: &mut Vec<Event>, at: u64, ask: Ask) {
    let patience = chance.percent(10).then(|| chance.below(3_000));
    let what = What::Ask { process: chance.below(setup.processes), ask, patience };
    events.push(Event { at, what });
}

/// Charges that are captured, voided and refunded, side by side and again and again, and some that a wallet pays in part.
fn lives(setup: &Setup, chance: &mut Chance, events: &mut Vec<Event>) {
    let kinds = chance.pick(&[2, 4, 8], 4);
    for _ in 0..chance.pick(&[0, 1, 2, 5], 1) {
        let (tenant, key) = (chance.between(1, 2), LIVES.saturating_add(chance.below(kinds)));
        let mut at = chance.below(setup.end / 2);
        for _ in 0..chance.between(1, 3) {
            let body = u64::from(chance.percent(5));
            ask_once(setup, chance, events, at, Ask::Charge { tenant, key, body });
            at = at.saturating_add(chance.below(2_000));
        }
        operations(setup, chance, events, (tenant, key, at));
    }
}

/// What is asked of one charge after it was made.
fn operations(
    setup: &Setup,
    chance: &mut Chance,
    events: &mut Vec<Event>,
    (tenant, key, mut at): (u64, u64, u64),
) {
    // What a hold can have first, or what a capture can.
    let first = chance.pick(&[0, 0, 1, 2, 3, 4, 5, 6], 0);
    let burst = chance.percent(40);
    for turn in 0..chance.pick(&[1, 3, 6, 12], 3) {
        let number = if turn == 0 { first } else { chance.below(OPERATIONS) };
        let key = key.saturating_mul(OPERATIONS).saturating_add(number);
        let body = u64::from(chance.percent(5));
        for _ in 0..chance.pick(&[1, 1, 2], 1) {
            ask_once(setup, chance, events, at, Ask::Operate { tenant, key, body });
        }
        if turn == 0 || !burst {
            at = at.saturating_add(chance.below(setup.end / 6));
        }
    }
}
