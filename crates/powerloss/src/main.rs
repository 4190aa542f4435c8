//! The long version: `--images N --seed S`.

use clap::Parser;
use counterfoil_powerloss::campaign::{Campaign, Scene, Take};
use counterfoil_powerloss::workload::Size;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often the totals are printed.
const PROGRESS: Duration = Duration::from_secs(5);

/// Cuts the power under the embedded store, opens what is left, and checks that nothing
/// acknowledged is gone.
#[derive(Parser)]
struct Arguments {
    /// Number of images to open.
    #[arg(long, default_value_t = 10_000)]
    images: usize,
    /// The first seed. Threads run as they like, so a seed gives the same sets and cuts, not the
    /// same recording.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Images per operation of a recording.
    #[arg(long, default_value_t = 2)]
    per_operation: usize,
    /// Keys per session of a recording.
    #[arg(long, default_value_t = 30)]
    keys: i64,
    /// Where images are built; memory is fastest.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where images that break a promise are kept.
    #[arg(long, default_value = "powerloss-violations")]
    keep: PathBuf,
}

fn main() -> ExitCode {
    match go(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn go(arguments: &Arguments) -> Result<bool, String> {
    let scratch = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.map_err(|error| format!("no place for images: {error}"))?;
    let mut campaign = Campaign::new(scratch.path().to_owned(), arguments.seed);
    campaign.keep = Some(arguments.keep.clone());
    let size = Size {
        sessions: 3,
        keys: arguments.keys,
        producers: 6,
        sqlite_wal: Size::SHORT_SQLITE_WAL,
        log: Size::SHORT_LOG,
    };
    let mut last = Instant::now();
    let mut before: Option<Take> = None;
    let mut said = 0;
    for (seed, scene) in (arguments.seed..).zip(Scene::ALL.into_iter().cycle()) {
        let recorded = scene.record(&scratch.path().join("recorded"), before.as_ref(), size, seed);
        let take = match recorded {
            Ok(take) => take,
            Err(why) => {
                // A store that cannot continue after a cut is a violation, too.
                campaign.totals.violations += 1;
                println!("violation: seed {seed}, {scene:?}: the store cannot go on: {why}");
                break;
            }
        };
        campaign.cut_everywhere(&take, arguments.per_operation, |totals| {
            for words in totals.words.iter().skip(said) {
                println!("violation: seed {seed}, {scene:?}: {words}");
            }
            said = totals.words.len();
            if last.elapsed() >= PROGRESS {
                last = Instant::now();
                println!("seed {seed}, {scene:?}: {totals}");
            }
            totals.images < arguments.images
        })?;
        before = Some(take);
        if campaign.totals.images >= arguments.images {
            break;
        }
    }
    println!("{}", campaign.totals);
    Ok(campaign.totals.violations == 0)
}
