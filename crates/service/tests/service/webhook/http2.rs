//! Merchants that speak HTTP/2, well and badly.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use svc_service::domain::Order;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

use crate::support::*;

on_both_engines! {
    one_connection_carries_one_destination,
    a_merchant_that_hangs_is_left_and_the_others_are_not,
    an_endless_answer_is_cut_off,
    a_stream_or_connection_that_breaks_is_a_failure,
    a_connection_that_takes_no_more_is_made_anew,
}

/// What a merchant does with a request.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Answers(u16),
    Hangs,
    HangsInTheBody,
    NeverEnds,
    ResetsTheStream,
    ClosesTheConnection,
    /// After its answer (GOAWAY).
    TakesNoMore,
}

struct Merchant {
    receiver: Receiver,
    /// Bytes of bodies that were taken from it.
    taken: Arc<AtomicUsize>,
}

impl Merchant {
    async fn start(delivery: &Secure, does: Does) -> Self {
        let taken: Arc<AtomicUsize> = Arc::default();
        let for_server = Arc::clone(&taken);
        let tls = delivery.authority.good(HOST, &["h2"]);
        let receiver =
            Receiver::raw_secure(tls, move |stream| serve(stream, does, Arc::clone(&for_server)))
                .await;
        Self { receiver, taken }
    }

    fn url(&self) -> String {
        format!("https://{HOST}:{}/hook", self.receiver.address().port())
    }
}

async fn serve(stream: TlsStream<TcpStream>, does: Does, taken: Arc<AtomicUsize>) {
    let over = Arc::new(Notify::new());
    let service = service_fn(|request: Request<Incoming>| {
        let (over, taken) = (Arc::clone(&over), Arc::clone(&taken));
        async move {
            request.into_body().collect().await.map_err(|fault| fault.to_string())?;
            let body = |frames| BoxBody::new(Frames { left: frames, taken });
            let mut answer = Response::new(Full::<Bytes>::default().boxed());
            match does {
                Does::Answers(status) => {
                    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                }
                Does::Hangs => std::future::pending::<()>().await,
                Does::HangsInTheBody => *answer.body_mut() = body(1),
                Does::NeverEnds => *answer.body_mut() = body(usize::MAX),
                Does::ResetsTheStream => return Err("no".to_owned()),
                Does::ClosesTheConnection => {
                    over.notify_one();
                    std::future::pending::<()>().await;
                }
                Does::TakesNoMore => over.notify_one(),
            }
            Ok(answer)
        }
    });
    let io = TokioIo::new(stream);
    let mut serving = pin!(http2::Builder::new(TokioExecutor::new()).serve_connection(io, service));
    tokio::select! {
        _ = &mut serving => return,
        () = over.notified() => {}
    }
    if does == Does::TakesNoMore {
        serving.as_mut().graceful_shutdown();
        let _ = serving.await;
    }
}

/// So many kilobytes, and no end.
struct Frames {
    left: usize,
    taken: Arc<AtomicUsize>,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const KILOBYTE: [u8; 1_024] = [b'x'; 1_024];
        if self.left == 0 {
            return Poll::Pending;
        }
        self.left -= 1;
        self.taken.fetch_add(KILOBYTE.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&KILOBYTE)))))
    }
}

const HOST: &str = "shop.example.com";

/// Trusts an authority of its own and finds the host at this machine.
struct Secure {
    delivery: TestDelivery,
    authority: Authority,
    _names: NameServer,
}

impl Secure {
    async fn start(database: TestDatabase) -> Self {
        let (authority, names) = (Authority::new(), NameServer::saying(&["127.0.0.1"]).await);
        let delivery = TestDelivery::start_with(database, |config| {
            config.webhooks.name_servers = vec![names.address()];
            config.webhooks.certificates = Some(authority.file().to_owned());
        })
        .await;
        Self { delivery, authority, _names: names }
    }

    /// One event for each of these merchants, delivered or not.
    async fn deliver_to(&mut self, merchants: &[Merchant]) -> Vec<Order> {
        let mut orders = Vec::new();
        for merchant in merchants {
            let shop = self.delivery.shop(&merchant.url()).await;
            orders.push(self.delivery.paid_order(&shop, "order_1").await);
        }
        self.delivery.drain().await;
        orders
    }
}

async fn one_connection_carries_one_destination(database: TestDatabase) {
    const ORDERS: usize = 50;
    let mut secure = Secure::start(database).await;
    let merchant = Merchant::start(&secure, Does::Answers(200)).await;
    let shop = secure.delivery.shop(&merchant.url()).await;
    let mut orders = vec![secure.delivery.paid_order(&shop, "first").await];
    secure.delivery.drain().await;
    for number in 0..ORDERS {
        orders.push(secure.delivery.paid_order(&shop, &format!("order_{number}")).await);
    }
    secure.delivery.drain().await;
    for order in &orders {
        secure.delivery.delivered_at_once(order, "over HTTP/2").await;
    }
    assert_eq!(merchant.receiver.connections(), 1);
}

async fn a_merchant_that_hangs_is_left_and_the_others_are_not(database: TestDatabase) {
    let mut secure = Secure::start(database).await;
    let mut merchants = Vec::new();
    for does in [Does::Hangs, Does::HangsInTheBody, Does::Answers(200)] {
        merchants.push(Merchant::start(&secure, does).await);
    }
    let orders = secure.deliver_to(&merchants).await;
    for order in &orders[..2] {
        let attempt = secure.delivery.failed_once(order, "a merchant that hangs").await;
        let error = attempt.error.as_deref();
        assert_eq!(error, Some("no complete answer within 5 seconds"));
    }
    secure.delivery.delivered_at_once(&orders[2], "beside them").await;
    assert_eq!(secure.delivery.ended("timeout"), 2);
}

async fn an_endless_answer_is_cut_off(database: TestDatabase) {
    // What we read, as much again that may be on its way meanwhile, and what the server has at hand.
    const TAKEN_MAX: usize = 2 * 16 * 1_024 + 8 * 1_024;
    let mut secure = Secure::start(database).await;
    let merchant = Merchant::start(&secure, Does::NeverEnds).await;
    let orders = secure.deliver_to(std::slice::from_ref(&merchant)).await;
    let attempt = secure.delivery.delivered_at_once(&orders[0], "without end").await;
    assert_eq!(attempt.answer_start, [b'x'; 512]);
    let taken = merchant.taken.load(Ordering::Relaxed);
    assert!((16 * 1_024..=TAKEN_MAX).contains(&taken), "{taken} bytes were taken");
}

async fn a_stream_or_connection_that_breaks_is_a_failure(database: TestDatabase) {
    let mut secure = Secure::start(database).await;
    let mut merchants = Vec::new();
    for does in [Does::ResetsTheStream, Does::ClosesTheConnection, Does::Answers(410)] {
        merchants.push(Merchant::start(&secure, does).await);
    }
    let orders = secure.deliver_to(&merchants).await;
    for order in &orders[..2] {
        let attempt = secure.delivery.failed_once(order, "broken").await;
        assert_eq!(attempt.http_status, None);
        assert!(attempt.error.is_some_and(|why| !why.is_empty()));
    }
    assert_eq!((secure.delivery.ended("broken"), secure.delivery.ended("gone")), (2, 1));
}

async fn a_connection_that_takes_no_more_is_made_anew(database: TestDatabase) {
    const ORDERS: usize = 5;
    let mut secure = Secure::start(database).await;
    let merchant = Merchant::start(&secure, Does::TakesNoMore).await;
    let shop = secure.delivery.shop(&merchant.url()).await;
    for number in 0..ORDERS {
        let order = secure.delivery.paid_order(&shop, &format!("order_{number}")).await;
        secure.delivery.drain().await;
        secure.delivery.delivered_at_once(&order, "after a farewell").await;
    }
    // One may be used once more before its farewell is heard.
    assert!((2..=ORDERS).contains(&merchant.receiver.connections()));
}
