//! A wire to PostgreSQL on which the answer to a commit can be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::TestDatabase;

#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<AtomicBool>);

impl Wire {
    /// The same database at the other end of a wire.
    pub(crate) async fn to(database: &TestDatabase) -> (Self, TestDatabase) {
        let TestDatabase::Postgres { server, name } = database else { unreachable!() };
        let (user, rest) = server.split_once('@').unwrap();
        let (there, path) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let (wire, there) = (Self::default(), there.to_owned());
        let carrying = wire.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&there).await.unwrap();
                tokio::spawn(carrying.clone().carry(client, server));
            }
        });
        let server = format!("{user}@{here}/{path}");
        (wire, TestDatabase::Postgres { server, name: name.clone() })
    }

    /// The next commit is done, and whoever asked for it does not hear of it.
    pub(crate) fn lose_the_next_commit(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    async fn carry(self, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
        let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                count = client.read(&mut asked) => {
                    let asked = &asked[..count?];
                    if asked.is_empty() {
                        return Ok(());
                    }
                    server.write_all(asked).await?;
                    let commits = asked.windows(6).any(|word| word == b"COMMIT");
                    if commits && self.0.swap(false, Ordering::Relaxed) {
                        server.read_exact(&mut answered[..1]).await?;
                        return Ok(());
                    }
                }
                count = server.read(&mut answered) => {
                    let answered = &answered[..count?];
                    if answered.is_empty() {
                        return Ok(());
                    }
                    client.write_all(answered).await?;
                }
            }
        }
    }
}
