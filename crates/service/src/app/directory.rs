//! Partners and applications in memory, so that the hot paths read no database to know a caller.
//!
//! A worker compares the stored version every second; a caller we do not know makes us look at
//! once, so that a partner created a moment ago can work at once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::{ApplicationId, ApplicationUuid, ClientId, PartnerId};
use crate::store::{Application, Directory, Partner, Result, Store};

pub struct DirectoryCache {
    current: RwLock<Arc<Known>>,
    /// One look at a time: callers that miss together share it.
    looking: tokio::sync::Mutex<()>,
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
        Ok(Self { current: RwLock::new(Arc::new(known)), looking: tokio::sync::Mutex::new(()) })
    }

    pub fn known(&self) -> Arc<Known> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the directory again if it changed.
    pub async fn refresh(&self, store: &Store) -> Result<Arc<Known>> {
        let _one_at_a_time = self.looking.lock().await;
        if store.directory_version().await? != self.known().version {
            let fresh = Arc::new(Known::from(store.directory().await?));
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        Ok(self.known())
    }
}
