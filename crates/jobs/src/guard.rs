//! The destination guard at run time: resolves a host, checks every address, and only lets checked addresses
//! be dialled. The rules themselves are in `domain::destination`.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rapport_app::destination::DestinationCheck;
use rapport_domain::destination::{AddressPolicy, Destination, Host, Refusal};

/// How long a resolution is cached. Its addresses are still checked at every attempt.
const CACHE_FOR: Duration = Duration::from_secs(2);
const CACHE_SIZE: usize = 4096;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveError {
    /// The name has no address.
    NotFound(String),
    /// Our own resolver failed.
    Own(String),
}

/// Turns a host name into addresses.
pub trait Resolver: Send + Sync + 'static {
    fn resolve(&self, host: String) -> BoxFuture<'static, Result<Vec<IpAddr>, ResolveError>>;
}

/// The system's resolver.
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> BoxFuture<'static, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(async move {
            match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => Ok(found.map(|address| address.ip()).collect()),
                Err(error) => {
                    let text = error.to_string();
                    // getaddrinfo says this when no DNS server answered, which isn't the receiver's fault.
                    let ours = text.contains("Temporary failure") || text.contains("System error");
                    Err(if ours { ResolveError::Own(text) } else { ResolveError::NotFound(text) })
                }
            }
        })
    }
}

/// Why a destination isn't dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDialled {
    Refused(Refusal),
    Unresolved(ResolveError),
}

type Cached = (Instant, Result<Vec<IpAddr>, ResolveError>);

pub struct Guard {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolver>,
    cache: Mutex<HashMap<String, Cached>>,
}

impl Guard {
    pub fn new(policy: AddressPolicy, resolver: Arc<dyn Resolver>) -> Self {
        Self { policy, resolver, cache: Mutex::default() }
    }

    /// The addresses an attempt may dial now: all of them checked, none if one is refused.
    pub async fn addresses(&self, destination: &Destination) -> Result<Vec<IpAddr>, NotDialled> {
        destination.judge_literal(&self.policy).map_err(NotDialled::Refused)?;
        let addresses = match destination.host() {
            Host::Ip(address) => vec![address],
            Host::Name(name) => self.resolve(name).await.map_err(NotDialled::Unresolved)?,
        };
        destination.judge_all(&addresses, &self.policy).map_err(NotDialled::Refused)?;
        Ok(addresses)
    }

    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        if let Some((at, found)) = self.cache.lock().get(name)
            && at.elapsed() < CACHE_FOR
        {
            return found.clone();
        }
        let found = self.resolver.resolve(name.to_owned()).await;
        let mut cache = self.cache.lock();
        if cache.len() >= CACHE_SIZE {
            cache.retain(|_, (at, _)| at.elapsed() < CACHE_FOR);
        }
        if cache.len() < CACHE_SIZE {
            cache.insert(name.to_owned(), (Instant::now(), found.clone()));
        }
        found
    }
}

impl DestinationCheck for Guard {
    /// On create and edit: a name that doesn't resolve now is accepted, and checked at each attempt.
    fn check<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            destination.judge_literal(&self.policy)?;
            if let Host::Name(name) = destination.host()
                && let Ok(addresses) = self.resolver.resolve(name.to_owned()).await
                && !addresses.is_empty()
            {
                destination.judge_all(&addresses, &self.policy)?;
            }
            Ok(())
        })
    }
}
