//! Drawing a run from a seed, as in swarm testing. Every seed turns some faults off and chooses
//! intensities, so that common combinations do not drown rare ones.

use crate::chance::Chance;
use crate::client::{LIVES, OPERATIONS, PAYOUTS_ALIKE};
use crate::faults::{FAULTS, Fault, Odds};
use crate::script::{Action, Ask, Event, FaultSource, Script, Setup};
use counterfoil_gateway::ProviderProfile;
use counterfoil_gateway::profile::PROFILES;

/// The run of a seed, on the wanted profile or a drawn one.
pub fn draw(seed: u64, wanted: Option<&'static ProviderProfile>) -> Script {
    let mut chance = Chance::at(&[seed, 1_000]);
    let [first, ..] = &PROFILES;
    let profiles: Vec<&'static ProviderProfile> = PROFILES.iter().collect();
    let drawn = chance.pick(&profiles, first);
    let mut setup = setup(seed, wanted.unwrap_or(drawn), &mut chance);
    let mut events = events(&setup, &mut chance);
    let faults = FaultSource::Drawn(odds(&mut chance));
    // Each part has a separate random stream, so adding a part leaves the rest of a seed's run
    // unchanged.
    crowd(&setup, &mut Chance::at(&[seed, 1_001]), &mut events);
    operators(&mut setup, &mut Chance::at(&[seed, 1_002]), &mut events);
    payouts(&setup, &mut Chance::at(&[seed, 1_003]), &mut events);
    hints(&setup, &mut Chance::at(&[seed, 1_004]), &mut events);
    events.sort_by_key(|event| event.at);
    Script { setup, events, faults }
}

/// Half of the runs have operators, who resolve dead letters during the faults and afterwards.
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

/// Payouts with retries: scattered, or many at once from a single account.
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

/// In half of the runs the provider sends events: early, late, twice, or about any payment, and
/// mostly soon after a request.
fn hints(setup: &Setup, chance: &mut Chance, events: &mut Vec<Event>) {
    if chance.percent(50) {
        return;
    }
    let asked: Vec<u64> = events.iter().map(|event| event.at).collect();
    for _ in 0..chance.pick(&[10, 60, 240], 60) {
        let action = Action::Hint { process: chance.below(setup.processes), number: chance.below(16) };
        let at = chance.pick(&asked, 0).saturating_add(chance.below(10_000));
        events.push(Event { at: at.min(setup.end), action });
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

/// The possible faults of this run and their odds.
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
    // Wrong answers of the provider end as dead letters. Many of them would hide everything else.
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
            _ => Ask::Ledger { key: first_book.saturating_add(chance.below(ledger)), body },
        };
        let patience = chance.percent(impatient).then(|| chance.below(3_000));
        let action = Action::Ask { process: chance.below(setup.processes), ask, patience };
        events.push(Event { at, action });
    }
    for _ in 0..chance.pick(&[0, 0, 1, 4], 0) {
        let process = chance.below(setup.processes);
        let action = match chance.below(10) {
            0 | 1 => Action::Crash { process, back: chance.between(100, 20_000) },
            2..=4 => Action::Pause { process, ms: chance.pick(&[2_000, 35_000, 90_000, 400_000], 35_000) },
            5 => Action::Drain { process },
            6 | 7 => Action::ProviderDown(chance.between(1_000, 60_000)),
            _ => Action::StoreDown(chance.between(100, 70_000)),
        };
        events.push(Event { at: chance.below(setup.end), action });
    }
    // Long sleeps let windows, waits and quiescence end while faults still strike.
    for _ in 0..chance.pick(&[0, 0, 1, 3], 0) {
        let ms = chance.pick(&[40_000, 200_000, 200_000, 4_000_000, 50_000_000], 200_000);
        events.push(Event { at: chance.below(setup.end), action: Action::Freeze(ms) });
    }
    lives(setup, chance, &mut events);
    events
}

/// A crowd of charges in addition to the few with many retries. The crowd does not change the odds
/// of the others, and shares the background work of the processes.
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
    let action = Action::Ask { process: chance.below(setup.processes), ask, patience };
    events.push(Event { at, action });
}

/// Charges with captures, voids and refunds, concurrent and repeated. A wallet pays a part of some.
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

/// Operations on one charge.
fn operations(
    setup: &Setup,
    chance: &mut Chance,
    events: &mut Vec<Event>,
    (tenant, key, mut at): (u64, u64, u64),
) {
    // The first operation suits an authorized or a captured charge.
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
