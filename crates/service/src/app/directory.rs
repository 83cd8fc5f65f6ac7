//! Partners and applications in memory, so that the hot paths read no database to know a caller.
//!
//! A worker compares the stored version every second; a caller we do not know makes us look at
//! once, so that a partner created a moment ago can work at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::{ApplicationId, ApplicationUuid, ClientId, PartnerId};
use crate::store::{Application, Directory, Partner, Result, Store};

pub struct DirectoryCache {
    current: RwLock<Arc<Known>>,
    /// Looks at the database so far, each known by its number.
    looks: AtomicU64,
    /// One look at a time; the last that succeeded.
    looking: tokio::sync::Mutex<u64>,
}

/// The directory as of one version.
#[derive(Debug, Default)]
pub struct Known {
    version: i64,
    partners: HashMap<ClientId, Arc<Partner>>,
    applications: HashMap<ApplicationUuid, Arc<Application>>,
    by_id: HashMap<ApplicationId, Arc<Application>>,
}

impl Known {
    pub fn partner(&self, client: &ClientId) -> Option<&Arc<Partner>> {
        self.partners.get(client)
    }

    pub fn application(&self, uuid: &ApplicationUuid) -> Option<&Arc<Application>> {
        self.applications.get(uuid)
    }

    pub fn partners(&self) -> impl Iterator<Item = &Arc<Partner>> {
        self.partners.values()
    }

    pub fn applications(&self) -> impl Iterator<Item = &Arc<Application>> {
        self.applications.values()
    }

    pub fn partner_by_id(&self, id: PartnerId) -> Option<&Arc<Partner>> {
        self.partners.values().find(|partner| partner.id == id)
    }

    pub fn application_by_id(&self, id: ApplicationId) -> Option<&Arc<Application>> {
        self.by_id.get(&id)
    }
}

impl From<Directory> for Known {
    fn from(read: Directory) -> Self {
        let applications: Vec<_> = read.applications.into_iter().map(Arc::new).collect();
        Self {
            version: read.version,
            partners: read
                .partners
                .into_iter()
                .map(|partner| (partner.client_id.clone(), Arc::new(partner)))
                .collect(),
            by_id: applications.iter().map(|found| (found.id, Arc::clone(found))).collect(),
            applications: applications
                .into_iter()
                .map(|application| (application.uuid.clone(), application))
                .collect(),
        }
    }
}

impl DirectoryCache {
    pub async fn load(store: &Store) -> Result<Self> {
        let known = Known::from(store.directory().await?);
        Ok(Self {
            current: RwLock::new(Arc::new(known)),
            looks: AtomicU64::default(),
            looking: tokio::sync::Mutex::default(),
        })
    }

    pub fn known(&self) -> Arc<Known> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whoever is not known is looked for once.
    pub async fn application(
        &self,
        store: &Store,
        id: ApplicationId,
    ) -> Result<Option<Arc<Application>>> {
        let known = self.known();
        match known.application_by_id(id) {
            Some(found) => Ok(Some(Arc::clone(found))),
            None => Ok(self.refresh(store).await?.application_by_id(id).cloned()),
        }
    }

    /// Reads the directory again if it changed. Callers that miss while a look is under way share the next:
    /// however many there are, the database is asked by one at a time.
    pub async fn refresh(&self, store: &Store) -> Result<Arc<Known>> {
        let asked_after = self.looks.load(Ordering::Acquire);
        let mut looked = self.looking.lock().await;
        if *looked > asked_after {
            return Ok(self.known());
        }
        let this = self.looks.fetch_add(1, Ordering::AcqRel) + 1;
        if store.directory_version().await? != self.known().version {
            let fresh = Arc::new(Known::from(store.directory().await?));
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        *looked = this;
        Ok(self.known())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Database, Options};

    #[tokio::test]
    async fn callers_that_miss_together_share_a_look() {
        let folder = std::env::temp_dir().join(format!("svc_directory_{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let url = format!("sqlite:{}", folder.join("svc.db").display());
        let options = Options::new(None, 1, true);
        let store = Store::open(&Database::parse(&url).unwrap(), options).await.unwrap();
        let cache = DirectoryCache::load(&store).await.unwrap();
        // A look is under way, which may have begun before the directory changed.
        let under_way = cache.looking.lock().await;
        let mut missing: Vec<_> = (0..100).map(|_| Box::pin(cache.refresh(&store))).collect();
        for one in &mut missing {
            let waits = std::future::poll_fn(|context| {
                std::task::Poll::Ready(one.as_mut().poll(context).is_pending())
            });
            assert!(waits.await);
        }
        drop(under_way);
        for one in missing {
            one.await.unwrap();
        }
        assert_eq!(cache.looks.load(Ordering::Acquire), 1);
        cache.refresh(&store).await.unwrap();
        assert_eq!(cache.looks.load(Ordering::Acquire), 2, "who comes later looks anew");
        drop(store);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
