//! Producers that wait for each of their commits, in a separate process so that its CPU time can be
//! counted. They commit change sets through the store, or the same rows through the usual
//! implementation.

use super::charge::{ANSWER, opening, settling};
use super::usual::{OPENING, Order, Pool, SETTLING, Work};
use crate::bench::child::print_report;
use crate::bench::runtime::runtime_like_the_servers;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_self;
use clap::{Args, ValueEnum};
use counterfoil_load::child::{Answers, Driven, WARMUP};
use counterfoil_store::Store;
use counterfoil_store_postgres::{Options, PostgresStore};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The implementation that commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The product's store.
    Store,
    /// The usual implementation.
    Usual,
}

impl By {
    pub(super) const fn word(self) -> &'static str {
        match self {
            By::Store => "store",
            By::Usual => "usual",
        }
    }
}

/// The producers' report to the parent process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Produced {
    #[serde(flatten)]
    pub(super) driven: Driven,
    /// Transactions that contained the commits.
    pub(super) writes: u64,
}

/// Commits without HTTP; `bench --store postgres` starts it.
#[derive(Args)]
pub(crate) struct Commits {
    #[arg(long, value_enum)]
    by: By,
    /// A database with the tables of the chosen implementation.
    #[arg(long)]
    database: String,
    #[arg(long)]
    producers: usize,
    #[arg(long)]
    milliseconds: u64,
    /// The first charge's number; the following numbers must be free.
    #[arg(long)]
    first: i64,
}

enum Committer {
    Store(PostgresStore),
    Usual(Pool),
}

struct Scene {
    committer: Committer,
    next: AtomicI64,
    start: Instant,
    end: Instant,
}

impl Commits {
    pub(crate) fn run(self) -> Result<ExitCode> {
        print_report(&runtime_like_the_servers()?.block_on(self.measure())?)
    }

    async fn measure(self) -> Result<Produced> {
        let writes = Arc::new(AtomicU64::new(0));
        let committer = self.committer(&writes).await?;
        let (cpu, begun) = (cpu_of_self()?, writes.load(Ordering::Relaxed));
        let start = Instant::now() + WARMUP;
        let end = start + Duration::from_millis(self.milliseconds);
        let scene = Arc::new(Scene { committer, next: AtomicI64::new(self.first), start, end });
        let mut running = JoinSet::new();
        for _ in 0..self.producers {
            running.spawn(Arc::clone(&scene).produce());
        }
        let answers = running.join_all().await.into_iter().collect::<Result<Vec<Answers>>>()?;
        let cpu = cpu_of_self()?.saturating_sub(cpu);
        let driven = Driven::by(answers, start, cpu).map_err(Failure::while_("adding up"))?;
        Ok(Produced {
            writes: match self.by {
                By::Store => writes.load(Ordering::Relaxed).saturating_sub(begun),
                By::Usual => driven.answered,
            },
            driven,
        })
    }

    async fn committer(&self, writes: &Arc<AtomicU64>) -> Result<Committer> {
        Ok(match self.by {
            By::Usual => Committer::Usual(Pool::open(&self.database, self.producers).await?),
            By::Store => {
                let counted = Arc::clone(writes);
                let observe = move |_, _| {
                    counted.fetch_add(1, Ordering::Relaxed);
                };
                let options = Options { observe: Some(Arc::new(observe)), ..Options::default() };
                let opened = PostgresStore::open(&self.database, options).await;
                Committer::Store(opened.map_err(Failure::while_("opening the store"))?)
            }
        })
    }
}

impl Scene {
    async fn produce(self: Arc<Scene>) -> Result<Answers> {
        let mut answers = Answers::default();
        while Instant::now() < self.end {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match &self.committer {
                Committer::Store(store) => {
                    for set in [opening(number), settling(number)] {
                        let begun = Instant::now();
                        store.commit(set).await.map_err(|error| Failure::new(format!("{error:?}")))?;
                        answers.count(begun, self.start);
                    }
                }
                Committer::Usual(pool) => {
                    let key = format!("bench-{number:020}");
                    let work = work(number, &key);
                    for rows in [OPENING, SETTLING] {
                        let begun = Instant::now();
                        if !pool.commit(rows, &work).await? {
                            return Err(Failure::new(format!("charge {number} was there already")));
                        }
                        answers.count(begun, self.start);
                    }
                }
            }
        }
        Ok(answers)
    }
}

/// The charge of the change sets, for the usual implementation.
fn work(number: i64, key: &str) -> Work<'_> {
    let order = Order {
        amount: 1_250,
        currency: "USD",
        payment_method: "pm_card_visa",
        description: None,
        metadata: "{}",
    };
    Work {
        number,
        tenant: 1,
        key,
        request: &ANSWER[..200],
        order,
        reference: "pi_01JCQ2W8Z5T7K3M9N4P6R8S0VX",
        answer: &ANSWER,
    }
}
