//! Full disks: the store's small file system is filled to the last byte under load and emptied
//! again, with the server running or killed. Every acknowledged write must survive, the provider
//! must not be called for a write that failed, and work must continue once there is room.

use super::kill::FaultCounts;
use super::scene::Scene;
use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use std::fs::{File, remove_file};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

/// Enough for the store of a short campaign.
const SIZE: &str = "size=256m";
/// Number of times the disk is filled.
const TURNS: u64 = 12;
/// Upper bound of both the full and the free periods.
const WITHIN_MS: u64 = 700;
const CHUNK: usize = 64 * 1024;

/// A small file system, unmounted when dropped.
pub(super) struct Disk {
    place: Option<TempDir>,
    filler: PathBuf,
}

impl Disk {
    pub(super) fn mount() -> Result<Disk> {
        let made = tempfile::Builder::new().prefix("crash-disk-").tempdir();
        let place = made.map_err(Failure::while_("making a directory to mount on"))?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SIZE, "crash"]).arg(place.path());
        match mount.output() {
            Ok(done) if done.status.success() => {
                Ok(Disk { filler: place.path().join("filler"), place: Some(place) })
            }
            Ok(done) => Err(Failure::new(format!(
                "a disk that fills up needs a small file system, which only root may mount: run as root, or in a \
                 container that may mount ({})",
                String::from_utf8_lossy(&done.stderr).trim()
            ))),
            Err(error) => Err(Failure::new(format!("a disk that fills up needs `mount`: {error}"))),
        }
    }

    pub(super) fn store(&self) -> PathBuf {
        self.filler.with_file_name("store")
    }

    /// Fills all free bytes.
    fn fill(&self) -> Result<()> {
        fill(&self.filler).map_err(Failure::while_("filling the disk"))
    }

    fn free(&self) -> Result<()> {
        remove_file(&self.filler).map_err(Failure::while_("making room on the disk"))
    }

    /// Leaves the file system mounted for a person to inspect.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.place.take().map(TempDir::keep).unwrap_or_default()
    }
}

fn fill(filler: &Path) -> std::io::Result<()> {
    let mut file = File::create(filler)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.write(&chunk) {
            Ok(1..) => {}
            // Includes the last bytes.
            Ok(0) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::StorageFull && chunk.len() > 1 => {
                let half = chunk.len() / 2;
                chunk.truncate(half);
            }
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            // A lazy unmount also works while a process has a file open there.
            let _ = Command::new("umount").arg("--lazy").arg(place.path()).status();
        }
    }
}

/// Fills and empties the disk. In one of three turns the server is killed while it is full.
pub(super) async fn fill_repeatedly(
    scene: &mut Scene,
    disk: &Disk,
    prng: &mut Prng,
    shown: impl Fn(u64),
) -> Result<FaultCounts> {
    let mut counts = FaultCounts::default();
    for turn in 1..=TURNS {
        sleep(Duration::from_millis(prng.below(WITHIN_MS))).await;
        disk.fill()?;
        sleep(Duration::from_millis(prng.below(WITHIN_MS))).await;
        let Scene { servers, launcher, .. } = scene;
        let running =
            servers.first_mut().ok_or_else(|| Failure::new("there is no server on the full disk"))?;
        if let Some(status) = running.server.ended() {
            return Err(Failure::new(format!("the server ended with {status} when the disk was full")));
        }
        if prng.once_in(3) {
            running.server.kill().await?;
            disk.free()?;
            *running = launcher.start_server(running.address).await?;
            counts.kills += 1;
        } else {
            disk.free()?;
            running.server.ready(running.address, Instant::now()).await?;
        }
        counts.full += 1;
        shown(turn);
    }
    Ok(counts)
}

pub(super) const fn turns() -> u64 {
    TURNS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmountable_disk_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let missing = place.path().join("none/filler");
        assert_eq!(fill(&missing).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
