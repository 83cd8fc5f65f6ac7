//! A merchant that holds each answer until the test says what it is.

use std::sync::{Mutex, mpsc as answers};

use http_body_util::Full;
use hyper::Response;
use tokio::sync::mpsc;

use crate::support::{Received, Receiver};

pub(super) struct Gate {
    receiver: Receiver,
    came: mpsc::UnboundedReceiver<Received>,
    answers: answers::Sender<u16>,
}

impl Gate {
    pub(super) async fn start() -> Self {
        let (tell, came) = mpsc::unbounded_channel();
        let (answers, told) = answers::channel();
        let told = Mutex::new(told);
        let receiver = Receiver::start(move |request| {
            let _ = tell.send(request.clone());
            // The first that came is the first that is answered; at the end of the test all are.
            let status = tokio::task::block_in_place(|| told.lock().unwrap().recv().unwrap_or(500));
            Response::builder().status(status).body(Full::default()).unwrap()
        })
        .await;
        Self { receiver, came, answers }
    }

    pub(super) fn url(&self) -> String {
        self.receiver.url()
    }

    /// Waits for the next request, which then waits for its answer.
    pub(super) async fn came(&mut self) -> Received {
        self.came.recv().await.unwrap()
    }

    /// A request that is here already.
    pub(super) fn came_already(&mut self) -> Option<Received> {
        self.came.try_recv().ok()
    }

    /// Nothing has come that the test has not seen.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.came_already().is_none()
    }

    /// Answers the request that has waited longest, or the next that comes.
    pub(super) fn answer(&self, status: u16) {
        self.answers.send(status).unwrap();
    }
}
