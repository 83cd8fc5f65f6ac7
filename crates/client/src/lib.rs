//! What a Rust merchant links: the partner API with its token handled, and webhooks verified.
//!
//! ```no_run
//! # async fn walk() -> Result<(), svc_client::Error> {
//! use svc_client::{Client, Credentials, NewOrder, Urls};
//!
//! let client = Client::new(
//!     "https://sandbox.api.example.ao",
//!     Credentials {
//!         publishable_key: "pk_test_0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111".into(),
//!         client_id: "svc_4711".into(),
//!         client_secret: "svcsec_…".to_owned().into(),
//!     },
//! )?;
//! let order = client
//!     .create_payment_order(&NewOrder {
//!         external_transaction_id: "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff".into(),
//!         client_id: "user-1".into(),
//!         name: "Livro".into(),
//!         amount: 15_000,
//!         quantity: 1,
//!         urls: Urls {
//!             return_url: "https://shop.example.ao/success".into(),
//!             cancel_url: "https://shop.example.ao/cancelled".into(),
//!             webhook_url: "https://shop.example.ao/api/svc/webhook".into(),
//!         },
//!     })
//!     .await?;
//! println!("hand {} to the SDK", order.reference_number);
//! # Ok(())
//! # }
//! ```

mod api;
mod error;
mod events;
mod http;
mod token;
mod webhook;

pub use api::{Client, Credentials, NewOrder, Order, PaymentStatus, Urls, application_uuid};
pub use error::{Detail, Error};
pub use events::{FeedEvent, FeedPage};
pub use webhook::{PaymentEvent, WebhookError, verify_webhook, verify_webhook_with};
