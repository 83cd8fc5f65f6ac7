//! What a Rust merchant links: the partner API with its token handled, and webhooks verified.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), svc_client::Error> {
//! # let base_url = service_that_takes_one_order();
//! use svc_client::{Client, Credentials, NewOrder, PaymentStatus, Urls};
//!
//! let client = Client::new(
//!     &base_url, // SVC_BASE_URL
//!     Credentials {
//!         publishable_key: "pk_test_0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111".into(),
//!         client_id: "svc_4711".into(),
//!         client_secret: "svcsec_…".to_owned().into(),
//!     },
//! )?;
//! let reference = client
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
//! println!("hand {reference} to the SDK");
//!
//! // Later, if no webhook came:
//! let id = "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
//! let order = client.payment_by_external_transaction(id).await?;
//! assert_eq!(order.status, PaymentStatus::Pending);
//! # Ok(())
//! # }
//! # fn service_that_takes_one_order() -> String {
//! #     use std::io::{BufRead, BufReader, Read, Write};
//! #     let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//! #     let address = listener.local_addr().unwrap();
//! #     std::thread::spawn(move || {
//! #         for stream in listener.incoming().map_while(Result::ok) {
//! #             let (mut reader, mut head) = (BufReader::new(&stream), String::new());
//! #             while !head.ends_with("\r\n\r\n") {
//! #                 if reader.read_line(&mut head).unwrap() == 0 { return; }
//! #             }
//! #             let head = head.to_lowercase();
//! #             let length = head.split("content-length: ").nth(1);
//! #             let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
//! #             reader.take(length).read_to_end(&mut Vec::new()).unwrap();
//! #             let body = if head.starts_with("post /token") {
//! #                 r#"{"access_token":"T","expires_in":3600}"#
//! #             } else {
//! #                 r#"{"code":200,"message":"OK","data":{"externalTransactionId":"order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff","paymentStatus":"PEN","referenceNumber":"R1","amount":15000}}"#
//! #             };
//! #             let length = body.len();
//! #             write!(&stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
//! #         }
//! #     });
//! #     format!("http://{address}")
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
