//! Accepts connections, reads requests within bounds, and has the store's work done on threads that may block.
//!
//! Invariants: a connection holds one of a fixed number of places and is given up if it sends no head, or takes no answer, in time; the
//! store does a fixed number of jobs at a time; a job ends early if nobody waits for its answer any more.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drumlin::embedding::caught;
use drumlin::{Cancel, Result, Store};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::api::{self, Call, Context};
use crate::assets;
use crate::guard::{Admitted, Guard};
use crate::patient::Patient;
use crate::query::Query;
use crate::reply::Reply;

/// Jobs of the store at a time.
pub const JOBS_MAX: usize = 6;
/// Connections at a time; more wait until one ends.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may take to send the body of a request.
const BODY_TIME: Duration = Duration::from_secs(10);
/// How long a request waits until the store can do its job.
const JOB_WAIT: Duration = Duration::from_secs(30);
/// The buffer for a head, which bounds its size.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The headers of a request.
const HEADERS_MAX: usize = 64;
/// The size of a request's body.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How often a request that waits for commits looks for them.
const COMMITS_POLL: Duration = Duration::from_millis(250);
/// How long it waits at most.
const COMMITS_WAIT: Duration = Duration::from_secs(20);

/// What all connections use.
pub struct Shared {
    guard: Guard,
    context: Arc<Context>,
    jobs: Arc<Semaphore>,
}

impl Shared {
    /// For a server that shows `store`.
    pub fn new(store: Store, guard: Guard, write: bool, closing: Cancel) -> Self {
        let context = Arc::new(Context::new(store, write, closing));
        Self { guard, context, jobs: Arc::new(Semaphore::new(JOBS_MAX)) }
    }
}

/// Accepts connections until the runtime ends.
pub async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // As when there are too many open files.
            Err(_) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let answer = |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(answer(&shared, request).await) }
            };
            // What fails here is the client's connection.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_BYTES_MAX)
                .max_headers(HEADERS_MAX)
                .serve_connection(TokioIo::new(Patient::new(stream)), service_fn(answer))
                .await;
            drop(place);
        });
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let with_body = request.method() != Method::HEAD;
    let reply = match reply(shared, request).await {
        Ok(reply) | Err(reply) => reply,
    };
    reply.into_response(with_body)
}

async fn reply(shared: &Shared, request: Request<Incoming>) -> std::result::Result<Reply, Reply> {
    let admitted = shared.guard.check(request.method(), request.uri(), request.headers())?;
    let path = request.uri().path().to_owned();
    let nothing = || Reply::refusal(StatusCode::NOT_FOUND, "nothing has this name; check the address");
    if admitted == Admitted::Page {
        return assets::find(&path).ok_or_else(nothing);
    }
    let query = Query::new(request.uri().query().unwrap_or_default()).map_err(|e| Reply::error(&e))?;
    let body = match admitted {
        Admitted::Change if !shared.context.write => {
            let hint =
                "this server is for reading only; start it with --write (in Python: write=True) to change the store";
            return Err(Reply::refusal(StatusCode::FORBIDDEN, hint));
        }
        Admitted::Change => Some(body(request.into_body()).await?),
        _ => None,
    };
    let call = Arc::new(Call { path, query, body });
    let waits = call.path == "/api/commits" && call.query.get("wait").is_some();
    let mut waited = Duration::ZERO;
    loop {
        let found = job(shared, call.clone()).await?;
        match found {
            Some(reply) if !waits || waited >= COMMITS_WAIT || api::found_commits(&reply) => return Ok(reply),
            None => return Err(nothing()),
            Some(_) => {}
        }
        sleep(COMMITS_POLL).await;
        waited += COMMITS_POLL;
    }
}

/// Reads a body as JSON.
async fn body(body: Incoming) -> std::result::Result<Value, Reply> {
    let refuse = |status, message: &str| Reply::refusal(status, message);
    let read = timeout(BODY_TIME, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let read =
        read.map_err(|_| refuse(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive in time"))?;
    let too_large = format!("the body of the request is incomplete, or larger than {BODY_BYTES_MAX} bytes");
    let read = read.map_err(|_| refuse(StatusCode::PAYLOAD_TOO_LARGE, &too_large))?.to_bytes();
    serde_json::from_slice(&read)
        .map_err(|_| refuse(StatusCode::BAD_REQUEST, "the body of the request is not valid JSON"))
}

/// Stops a job once its answer is waited for no more.
struct Waiter(Cancel);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Has the store do the work of a call; `None` if there is none of its name.
async fn job(shared: &Shared, call: Arc<Call>) -> std::result::Result<Option<Reply>, Reply> {
    let busy = || Reply::refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is busy with other requests; try again");
    let place = timeout(JOB_WAIT, shared.jobs.clone().acquire_owned()).await.map_err(|_| busy())?;
    let (place, context, waiter) = (place.map_err(|_| busy())?, shared.context.clone(), Waiter(Cancel::default()));
    let cancel = waiter.0.clone();
    let work = move || {
        let _place = place;
        let done: Result<Option<Reply>> = caught(|| api::answer(&context, &call, &cancel));
        done.unwrap_or_else(|e| Some(Reply::error(&e)))
    };
    let done = tokio::task::spawn_blocking(work).await;
    drop(waiter);
    done.map_err(|_| busy())
}
