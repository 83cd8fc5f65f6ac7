//! The outbox on every engine: claims, leases, superseding, replays and the feed.
