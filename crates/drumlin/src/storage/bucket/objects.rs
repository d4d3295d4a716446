//! What a bucket does as a [`Storage`]: each call as few requests as it takes, many of them at a time.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;
use futures_util::future::{join_all, join3};
use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{ListResult, ObjectStoreExt, PutPayload};

use super::{
    AHEAD, BucketStorage, ask_again, delete_again, match_answers, read_again, read_ranges, runs, tag, version,
};
use crate::base::{Error, Result, Timestamp, waiting};
use crate::storage::answers::{asks_again, met_another, put_error};
use crate::storage::{DELETE_BATCH, ObjectMeta, Storage, Survey, Tag, WriteMode};

impl Storage for BucketStorage {
    fn is_remote(&self) -> bool {
        true
    }

    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        let (client, path) = (self.client.clone(), self.path(name));
        let head = self.wait(async move { read_again(|| client.head(&path)).await })?;
        let head = head.map_err(|e| self.error(name, &e))?;
        Ok(Some(Timestamp(head.last_modified.timestamp_micros())))
    }

    fn keeps_replaced(&self, written: &Tag) -> Option<bool> {
        // Of S3 alone: others number the versions of objects whether they keep them or not. `null` has no versions besides.
        let version = super::version(written).version;
        self.is_s3.then(|| version.is_some_and(|version| version != "null"))
    }

    fn get(&self, name: &str) -> Result<Bytes> {
        self.wait(self.ask(name))?.map_err(|e| self.error(name, &e))
    }

    fn top(&self) -> Result<Vec<String>> {
        let listed = self.listing("")?;
        let objects = listed.objects.iter().map(|object| &object.location);
        let names = objects.chain(&listed.common_prefixes).filter_map(Path::filename);
        Ok(names.map(str::to_owned).collect())
    }

    fn survey(&self, tagged: &str, other: &str, folders: &[&str]) -> Survey {
        let lists: Vec<_> = folders.iter().map(|folder| self.ask_listing(folder)).collect();
        let (first, second) = (self.ask_tagged(tagged, None), self.ask(other));
        let asked = self.wait(async move { join3(first, second, join_all(lists)).await });
        let (first, second, lists) = match asked {
            Ok(answers) => answers,
            Err(e) => {
                let failed = || Error::new(e.kind(), e.message());
                let folders = folders.iter().map(|_| Err(failed())).collect();
                return Survey { tagged: Err(failed()), other: Err(failed()), folders };
            }
        };
        let listed = |(folder, listed): (&&str, object_store::Result<ListResult>)| match listed {
            Ok(listed) => Ok(Self::objects(folder, listed)),
            Err(e) => Err(self.error(folder, &e)),
        };
        Survey {
            tagged: self.tagged(tagged, None, first),
            other: second.map_err(|e| self.error(other, &e)),
            folders: folders.iter().zip(lists).map(listed).collect(),
        }
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let wanted = [(name.to_owned(), ranges.to_vec())];
        self.get_ranges_of(&wanted).pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        let mut requests = Vec::new();
        let mut counts = Vec::with_capacity(wanted.len());
        for (name, ranges) in wanted {
            // An empty range is not requested.
            let some: Vec<Range<u64>> = ranges.iter().filter(|range| range.start < range.end).cloned().collect();
            let before = requests.len();
            for run in runs(&some) {
                let (client, path, run) = (self.client.clone(), self.path(name), run.to_vec());
                requests.push(async move { read_again(|| read_ranges(&client, &path, &run)).await });
            }
            counts.push(requests.len() - before);
        }
        let answers = self.wait(async move { stream::iter(requests).buffered(AHEAD).collect::<Vec<_>>().await });
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(e) => return wanted.iter().map(|_| Err(Error::new(e.kind(), e.message()))).collect(),
        };
        let parts = |((name, ranges), count): (&(String, Vec<Range<u64>>), usize)| {
            let runs: Vec<_> = answers.by_ref().take(count).collect();
            let runs: object_store::Result<Vec<Option<Vec<Bytes>>>> = runs.into_iter().collect();
            let read = runs.map(|runs| runs.into_iter().collect::<Option<Vec<_>>>().map(|runs| runs.concat()));
            self.parts(name, ranges, read)
        };
        wanted.iter().zip(counts).map(parts).collect()
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        let (path, payload) = (self.path(name), parts.iter().cloned().collect::<PutPayload>());
        let (client, mode) = match mode {
            WriteMode::Once => return self.create_once(name, &payload, parts),
            // Always the same bytes, so the client retries it.
            WriteMode::Replace => (self.client.clone(), object_store::PutMode::Overwrite),
            WriteMode::Create => (self.once.clone(), object_store::PutMode::Create),
        };
        // A put that was not done may be sent again, whatever its mode.
        let creates = mode == object_store::PutMode::Create;
        let again = move |e: &object_store::Error| asks_again(e) || !creates && met_another(e);
        let put = async move {
            let put = || client.put_opts(&path, payload.clone(), mode.clone().into());
            ask_again(put, |answer| answer.as_ref().is_err_and(again)).await
        };
        self.wait(put)?.map(drop).map_err(|e| match met_another(&e) && !creates {
            true => Error::throttled(self.error(name, &e).message()),
            false => self.error(name, &e),
        })
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        let read = self.wait(self.ask_tagged(name, known))?;
        self.tagged(name, known, read)
    }

    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        let (client, path) = (self.once.clone(), self.path(name));
        let payload = parts.iter().cloned().collect::<PutPayload>();
        let mode = known.map_or(object_store::PutMode::Create, |tag| object_store::PutMode::Update(version(tag)));
        waiting::check()?;
        let put = self.wait(async move { client.put_opts(&path, payload, mode.into()).await });
        let put = put.map_err(|stopped| Error::in_doubt(format!("{name}: {}", stopped.message())))?;
        let put = put.map_err(|e| put_error(&self.secrets, name, &e))?;
        Ok(tag(put.e_tag, put.version))
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        let mut requests = Vec::new();
        for batch in names.chunks(DELETE_BATCH) {
            // A server that gets a name twice may answer with an element that the client cannot parse.
            let names: BTreeSet<&String> = batch.iter().collect();
            let paths: Vec<Path> = names.into_iter().map(|name| self.path(name)).collect();
            let client = self.client.clone();
            requests.push(async move {
                // A separate task: a malformed answer makes the client panic.
                let work = async move { delete_again(&client, &paths).await };
                tokio::spawn(work).await.ok()
            });
        }
        let answers = self.wait(async move { stream::iter(requests).buffered(AHEAD).collect::<Vec<_>>().await });
        let answers = answers.unwrap_or_default();
        let mut out = Vec::with_capacity(names.len());
        for (at, batch) in names.chunks(DELETE_BATCH).enumerate() {
            out.extend(match_answers(&self.secrets, &self.prefix, batch, answers.get(at).and_then(Option::as_ref)));
        }
        out
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        Ok(Self::objects(folder, self.listing(folder)?))
    }

    fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        let listed = self.listing(folder)?;
        Ok(listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
    }
}
