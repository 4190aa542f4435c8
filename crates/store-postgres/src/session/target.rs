//! The parsed store URL: hosts, TLS and timeouts.

use super::tls::{Check, Connector};
use crate::error::{OpenError, reason};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode};

/// The time limit for a new connection.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The default time limit for an address: long enough for a packet that is lost twice.
const ADDRESS_WITHIN: Duration = Duration::from_secs(4);
/// The default time limit for an address if there are several hosts.
const ADDRESS_OF_SEVERAL_WITHIN: Duration = Duration::from_secs(2);
/// Unacknowledged data for this long ends the connection (`TCP_USER_TIMEOUT`).
const UNACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(15);
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);

/// A server on one of several hosts, because standbys become primaries.
#[derive(Clone)]
pub(crate) struct Target {
    /// One configuration per host, in the order of the URL. In a single configuration all hosts
    /// would share one time limit, and a silent host would use it up.
    hosts: Vec<Config>,
    /// The index of the host that was used last.
    last: Arc<AtomicUsize>,
    pub(super) tls: Connector,
    /// The time limit for one host.
    pub(super) within: Duration,
}

impl Target {
    /// Reads a URL of libpq's form. `sslmode` may be `disable`, `prefer`, `require` or
    /// `verify-full`; `sslrootcert` names a file of certificates to trust instead of the public
    /// ones.
    pub(crate) fn parse(url: &str) -> Result<Target, OpenError> {
        let known = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        if !known {
            return Err(OpenError::BadUrl("its scheme is not postgres".to_owned()));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decoded(value))),
                Some(_) | None => rest.push(pair),
            }
        }
        let (ssl, check) = match mode {
            None | Some("prefer") => (SslMode::Prefer, Check::Nothing),
            Some("disable") => (SslMode::Disable, Check::Nothing),
            Some("require") if roots.is_none() => (SslMode::Require, Check::Nothing),
            Some("require" | "verify-full") => (SslMode::Require, Check::Everything(roots)),
            Some(other) => {
                let words =
                    format!("sslmode={other} is not known; use disable, prefer, require or verify-full");
                return Err(OpenError::BadUrl(words));
            }
        };
        let rest = rest.join("&");
        let whole = if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") };
        let mut config: Config = whole.parse().map_err(|error: tokio_postgres::Error| {
            // The parser's message names an option or a part, never the password.
            OpenError::BadUrl(reason(&error))
        })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(OpenError::BadUrl("it names no database".to_owned()));
        }
        let several = config.get_hosts().len().max(config.get_hostaddrs().len()) > 1;
        let usual = if several { ADDRESS_OF_SEVERAL_WITHIN } else { ADDRESS_WITHIN };
        let each = config.get_connect_timeout().copied().unwrap_or(usual);
        config.ssl_mode(ssl).connect_timeout(each).tcp_user_timeout(UNACKNOWLEDGED_WITHIN);
        config.keepalives(true).keepalives_idle(KEEPALIVE_AFTER);
        if config.get_application_name().is_none() {
            config.application_name("counterfoil");
        }
        let hosts = split_hosts(&config)?;
        let last = Arc::new(AtomicUsize::new(match config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => random_index()?,
            _ => 0,
        }));
        let within = CONNECT_WITHIN.max(each.saturating_add(ADDRESS_OF_SEVERAL_WITHIN));
        Ok(Target { hosts, last, tls: Connector::new(check)?, within })
    }

    /// The hosts with their indexes, starting with the host that was used last.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (usize, &Config)> {
        let first = self.last.load(Ordering::Relaxed).checked_rem(self.hosts.len()).unwrap_or(0);
        let all = self.hosts.iter().enumerate();
        all.clone().skip(first).chain(all.take(first))
    }

    /// Records that the host at this index was used.
    pub(crate) fn used(&self, index: usize) {
        self.last.store(index, Ordering::Relaxed);
    }
}

/// Splits a configuration into one per host.
fn split_hosts(config: &Config) -> Result<Vec<Config>, OpenError> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let fits = |length: usize| length <= 1 || length == count;
    if count == 0 {
        return Err(OpenError::BadUrl("it names no host".to_owned()));
    }
    if !(fits(ports.len()) && (hosts.is_empty() || addresses.is_empty() || hosts.len() == addresses.len())) {
        return Err(OpenError::BadUrl("it does not name as many ports or addresses as hosts".to_owned()));
    }
    let one = |index: usize| {
        let mut one = without_hosts(config);
        match hosts.get(index) {
            Some(Host::Tcp(name)) => drop(one.host(name)),
            Some(Host::Unix(path)) => drop(one.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(index) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(index).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    Ok((0..count).map(one).collect())
}

/// A copy of the configuration without hosts, addresses and ports.
fn without_hosts(config: &Config) -> Config {
    let mut rest = Config::new();
    if let Some(user) = config.get_user() {
        rest.user(user);
    }
    if let Some(password) = config.get_password() {
        rest.password(password);
    }
    if let Some(database) = config.get_dbname() {
        rest.dbname(database);
    }
    if let Some(options) = config.get_options() {
        rest.options(options);
    }
    if let Some(name) = config.get_application_name() {
        rest.application_name(name);
    }
    if let Some(within) = config.get_connect_timeout() {
        rest.connect_timeout(*within);
    }
    if let Some(within) = config.get_tcp_user_timeout() {
        rest.tcp_user_timeout(*within);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        rest.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        rest.keepalives_retries(retries);
    }
    rest.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    rest.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    rest.target_session_attrs(config.get_target_session_attrs());
    rest.channel_binding(config.get_channel_binding());
    rest
}

fn random_index() -> Result<usize, OpenError> {
    let mut byte = [0];
    getrandom::fill(&mut byte).map_err(|error| OpenError::Failed(format!("no random bytes: {error}")))?;
    Ok(usize::from(byte[0]))
}

/// Undoes percent-encoding. Invalid sequences stay unchanged.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration contains the password.
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Target::parse(url).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn urls_that_cannot_be_served_are_refused() {
        for (url, words) in [
            ("mysql://h/d", "scheme"),
            ("postgres://h", "names no database"),
            ("postgres://h/d?sslmode=verify-ca", "verify-full"),
            ("postgres://h/d?nonsense=1", "nonsense"),
            ("postgres:///d", "names no host"),
            ("postgres://one:1,two:2/d?hostaddr=127.0.0.1", "as many"),
            ("postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere", "cannot be secured"),
        ] {
            let message = refused(url);
            assert!(message.contains(words), "{url}: {message}");
        }
        let secret = refused("postgres://u:hunter2@h:port/d");
        assert!(!secret.contains("hunter2"), "{secret}");
    }

    #[test]
    fn modes_of_encryption() {
        for (query, mode) in [
            ("", SslMode::Prefer),
            ("?sslmode=prefer", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?application_name=x&sslmode=require", SslMode::Require),
            ("?sslmode=verify-full", SslMode::Require),
        ] {
            let target = Target::parse(&format!("postgres://u@h/d{query}")).unwrap();
            assert_eq!(target.hosts[0].get_ssl_mode(), mode, "{query}");
        }
        assert_eq!(decoded("%2Fetc%2fssl/a b%"), "/etc/ssl/a b%");
    }

    /// Hosts and ports in the order of attempts.
    fn tried(target: &Target) -> Vec<(usize, String)> {
        let shown = |config: &Config| format!("{:?} {:?}", config.get_hosts(), config.get_ports());
        target.hosts().map(|(index, config)| (index, shown(config))).collect()
    }

    #[test]
    fn hosts_are_tried_one_by_one_starting_with_the_last_used() {
        let url =
            "postgres://u:p@one:1,two:2,%2Frun%2Fpg:3/d?application_name=x&target_session_attrs=read-write";
        let target = Target::parse(url).unwrap();
        let all = [
            (0, r#"[Tcp("one")] [1]"#.to_owned()),
            (1, r#"[Tcp("two")] [2]"#.to_owned()),
            (2, r#"[Unix("/run/pg")] [3]"#.to_owned()),
        ];
        assert_eq!(tried(&target), all);
        target.used(1);
        assert_eq!(tried(&target), [all[1].clone(), all[2].clone(), all[0].clone()]);
        for (_, config) in target.hosts() {
            assert_eq!((config.get_user(), config.get_dbname()), (Some("u"), Some("d")));
            assert_eq!((config.get_password(), config.get_application_name()), (Some(&b"p"[..]), Some("x")));
            assert!(config.get_connect_timeout().is_some_and(|each| *each < target.within));
        }
        let one_port = Target::parse("postgres:///d?host=one&port=7").unwrap();
        assert_eq!(tried(&one_port), [(0, r#"[Tcp("one")] [7]"#.to_owned())]);
    }

    #[test]
    fn the_url_sets_the_time_limit_of_an_address() {
        let slow = Target::parse("postgres://h/d?connect_timeout=20").unwrap();
        assert_eq!(slow.hosts[0].get_connect_timeout(), Some(&Duration::from_secs(20)));
        assert!(slow.within > Duration::from_secs(20));
    }
}
