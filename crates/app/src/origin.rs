//! Where a command over the network comes from.

use std::net::IpAddr;

use rapport_domain::device::Device;
use rapport_domain::request_id::RequestId;

/// Recorded with the changes that the audit log keeps, and told to people whose login changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub address: IpAddr,
    pub request: RequestId,
    pub device: Device,
}
