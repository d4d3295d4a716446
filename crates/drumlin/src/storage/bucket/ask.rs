//! Requests to a bucket, to be waited for alone or beside others, and what their answers mean.

use std::future::Future;

use bytes::Bytes;
use object_store::{GetOptions, ListResult, ObjectStoreExt, PutPayload};

use super::super::answers::{asks_again, put_error};
use super::super::{ObjectMeta, Tag, differs, is_whole, within};
use super::{BucketStorage, PAUSE, TRIES_MAX, read_again, tag, version};
use crate::base::{Error, ErrorKind, Result};
use crate::storage::Storage;

impl BucketStorage {
    /// What is directly under a folder.
    pub(super) fn listing(&self, folder: &str) -> Result<ListResult> {
        self.wait(self.ask_listing(folder))?.map_err(|e| self.error(folder, &e))
    }

    pub(super) fn ask_listing(
        &self,
        folder: &str,
    ) -> impl Future<Output = object_store::Result<ListResult>> + Send + use<> {
        let (client, path) = (self.client.clone(), self.path(folder));
        async move { read_again(|| client.list_with_delimiter(Some(&path))).await }
    }

    pub(super) fn ask(&self, name: &str) -> impl Future<Output = object_store::Result<Bytes>> + Send + use<> {
        let (client, path) = (self.client.clone(), self.path(name));
        async move { read_again(|| async { client.get(&path).await?.bytes().await }).await }
    }

    pub(super) fn ask_tagged(
        &self,
        name: &str,
        known: Option<&Tag>,
    ) -> impl Future<Output = object_store::Result<(Bytes, Tag)>> + Send + use<> {
        let (client, path) = (self.client.clone(), self.path(name));
        let options = GetOptions::new().with_if_none_match(known.and_then(|tag| version(tag).e_tag));
        async move {
            read_again(|| async {
                let object = client.get_opts(&path, options.clone()).await?;
                let tag = tag(object.meta.e_tag.clone(), object.meta.version.clone());
                Ok((object.bytes().await?, tag))
            })
            .await
        }
    }

    /// What the answer to a read of an object of which `known` is the tag means.
    pub(super) fn tagged(
        &self,
        name: &str,
        known: Option<&Tag>,
        read: object_store::Result<(Bytes, Tag)>,
    ) -> Result<Option<(Bytes, Tag)>> {
        match read {
            Err(object_store::Error::NotModified { .. }) => Ok(None),
            Err(e) => Err(self.error(name, &e)),
            // Not every server checks the condition of a get.
            Ok((_, tag)) if known == Some(&tag) => Ok(None),
            Ok(read) => Ok(Some(read)),
        }
    }

    /// The objects of a listing of a folder.
    pub(super) fn objects(folder: &str, listed: ListResult) -> Vec<ObjectMeta> {
        let object = |object: object_store::ObjectMeta| {
            Some(ObjectMeta { name: within(folder, object.location.filename()?), bytes: object.size })
        };
        listed.objects.into_iter().filter_map(object).collect()
    }

    /// Creates an object under a name that is given once. A client that repeats a create by itself, or a server that refuses one
    /// for another reason, says that the object exists: what it holds shows whether it was done.
    pub(super) fn create_once(&self, name: &str, payload: &PutPayload, parts: &[Bytes]) -> Result<()> {
        let mut tried = 0;
        loop {
            let (client, path, payload) = (self.client.clone(), self.path(name), payload.clone());
            let put = async move { client.put_opts(&path, payload, object_store::PutMode::Create.into()).await };
            let Err(e) = self.wait(put)? else { return Ok(()) };
            let told = put_error(&self.secrets, name, &e);
            let failure = match told.kind() {
                // The service asks for that.
                _ if asks_again(&e) => Error::unavailable(told.message()),
                ErrorKind::Conflict => match self.get(name) {
                    Ok(there) if is_whole(&there, parts) => return Ok(()),
                    Ok(_) => return Err(differs(name)),
                    Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                    Err(_) => Error::unavailable(told.message()),
                },
                // It may have been done, or may be later: that is the same as done.
                ErrorKind::InDoubt => Error::unavailable(told.message()),
                _ => return Err(told),
            };
            tried += 1;
            if tried == TRIES_MAX {
                return Err(failure);
            }
            // Made within the runtime, which counts its time.
            self.wait(async move { tokio::time::sleep(PAUSE * (1 << tried)).await })?;
        }
    }
}
