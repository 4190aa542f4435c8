//! Optional services shared by several servers: Redis, in builds with the cargo feature `redis`.

use crate::config::Settings;
use crate::exit::Exit;
use counterfoil_core::types::time::Span;
use counterfoil_engine::SharedServices;
use std::time::Duration;

/// The services that the settings name. Nothing is connected yet, so an unreachable Redis does not
/// stop the start.
pub(crate) fn shared_services(settings: &Settings) -> Result<SharedServices, Exit> {
    let Some(url) = &settings.redis.url else { return Ok(SharedServices::default()) };
    let timeout = Duration::from_millis(settings.redis.timeout_ms);
    let fence_ttl = Span::from_ms(settings.redis.fence_ttl_ms.min(settings.idempotency.lease_ms));
    redis(url.reveal(), timeout, fence_ttl)
}

#[cfg(feature = "redis")]
fn redis(url: &str, timeout: Duration, fence_ttl: Span) -> Result<SharedServices, Exit> {
    use counterfoil_engine::answers::SharedCache;
    use counterfoil_gateway::fence::Fence;
    use std::sync::Arc;

    let redis = Arc::new(counterfoil_redis::Redis::new(url, timeout).map_err(Exit::refused)?);
    Ok(SharedServices {
        fence: Some((Arc::clone(&redis) as Arc<dyn Fence>, fence_ttl)),
        cache: Some(redis as Arc<dyn SharedCache>),
    })
}

#[cfg(not(feature = "redis"))]
fn redis(_: &str, _: Duration, _: Span) -> Result<SharedServices, Exit> {
    Err(Exit::refused(
        "this build has no Redis support; remove --redis (setting `redis.url`) or build with the cargo feature `redis`",
    ))
}

#[cfg(all(test, not(feature = "redis")))]
mod tests {
    use super::*;

    #[test]
    fn redis_is_refused_in_builds_without_it() {
        let Err(exit) = redis("redis://h", Duration::ZERO, Span::from_ms(0)) else {
            panic!("this build has no Redis");
        };
        assert!(format!("{exit:?}").contains("cargo feature `redis`"));
    }
}
