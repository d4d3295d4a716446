//! Cells in a table of PostgreSQL.
//!
//! One message is one transaction: nothing is left open by a process that stops between two of them, and poolers that give each
//! transaction another connection may lie between. The server has all of a message or none of it. Rows are
//! only inserted, and each probe is bounded on both sides: neither dead rows nor old snapshots slow it down. The row that a new one follows is
//! locked against being deleted: what a statement sees is what was there when it began, and that is not enough.
//!
//! Where processes race, they take turns: the one that has an advisory lock reads, builds its row on what it has read, and inserts it with
//! the message that ends the transaction of the lock. The others wait for the lock in the order in which they came, instead of
//! inserting rows in vain. Nothing depends on the lock but that: who waits too long for it goes on without, and a process that holds it
//! for longer loses it.
//!
//! A process that has handed in an offer waits for the process whose turn it is, as all others do at once, and seldom needs a turn itself: the server
//! lets all go on when that turn ends, and a process that finds its offer left tries to be next. Offers are in a table that the server need not
//! make durable.
//!
//! An error that says that nothing was done is one of the few below; after any other the insert is in doubt, and so it is if the server
//! warns that it no longer waits for its standby.

mod address;
mod secure;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow, Socket};

use self::address::ServerAddress;
use super::super::Tag;
use super::super::answers::with_causes;
use super::super::threads::NoAnswer;
use super::rows::{CellNews, CellPlace, CellRow, CellTurn, LogCell, Row, empty, news, passed, told};
use super::wait::ServerThread;
use crate::base::{EntryId, Env, Error, ErrorKind, Result, from_hex, to_hex, waiting};

/// The table of all cells of a database.
const TABLE: &str = "drumlin_log";
/// That of all offers.
const OFFERS: &str = "drumlin_offers";
/// More rows than are ever between two heads.
const ROWS_MAX: u64 = 1 << 20;

/// How long a turn lasts if nothing is put in it: the process lets it go then, or, if it has stopped, the server ends its transaction;
/// and how long the others wait.
const TURN: Duration = Duration::from_millis(100);
const TURN_OF_STOPPED: &str = "200ms";
const WAIT_FOR_TURN: &str = "250ms";
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// The table, and the index of its heads. Rows are deleted soon after they were inserted: the table is cleaned often.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS drumlin_log (
    cell uuid NOT NULL, number bigint NOT NULL, stamp uuid NOT NULL, head boolean NOT NULL, payload bytea NOT NULL,
    PRIMARY KEY (cell, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
ALTER TABLE drumlin_log ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS drumlin_log_heads ON drumlin_log (cell, number) WHERE head;
CREATE UNLOGGED TABLE IF NOT EXISTS drumlin_offers (
    cell uuid NOT NULL, id uuid NOT NULL, payload bytea NOT NULL,
    PRIMARY KEY (cell, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)";

/// A connection.
#[derive(Clone)]
struct Live {
    client: Arc<Client>,
    /// How often the server has warned.
    warned: Arc<AtomicU64>,
    /// The number of its turn, and whether that lasts.
    turn: Arc<Mutex<(u64, bool)>>,
}

/// Why a statement has no result.
enum SqlFailure {
    /// The server says that it did not do it; with the code of the error.
    Refused(Option<SqlState>, String),
    /// There is no answer.
    Silent(NoAnswer),
}

impl SqlFailure {
    fn error(self, told: &str) -> Error {
        match self {
            Self::Refused(_, text) => Error::unavailable(format!("{told}: {text}")),
            Self::Silent(none) => none.error().context(told),
        }
    }
}

/// A cell in a table of PostgreSQL.
pub struct PostgresCell {
    address: ServerAddress,
    told: String,
    id: u128,
    env: Env,
    thread: ServerThread,
    live: Mutex<Option<Live>>,
}

impl std::fmt::Debug for PostgresCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresCell").field("address", &self.told).field("id", &self.id).finish_non_exhaustive()
    }
}

fn uuid(id: u128) -> String {
    format!("'{id:032x}'::uuid")
}

impl PostgresCell {
    /// The cell `id` at an address as libpq takes it: `postgresql://user@host:5432/database`. What it lacks comes from the environment
    /// (`PGUSER`, `PGPASSWORD`, `PGPASSFILE`, …). Makes the table if it is not there.
    ///
    /// # Errors
    /// `InvalidArgument` for an address that makes no sense, and for a server that does not make commits durable; `Unavailable` if it
    /// cannot be reached.
    pub fn open(address: &str, id: u128, env: Env) -> Result<Self> {
        let (told, address) = (told(address)?, ServerAddress::parse(address)?);
        let (thread, live) = (ServerThread::start()?, Mutex::new(None));
        let cell = Self { address, told, id, env, thread, live };
        cell.check_durable()?;
        cell.make_table()?;
        Ok(cell)
    }

    fn check_durable(&self) -> Result<()> {
        let settings = "SELECT current_setting('fsync'), current_setting('synchronous_commit')";
        let rows = self.rows(settings)?;
        let setting = |at| rows.first().and_then(|row| row.get(at)).unwrap_or_default();
        let (fsync, commit) = (setting(0), setting(1));
        if fsync != "on" || !["on", "remote_apply"].contains(&commit) {
            return Err(Error::invalid(format!(
                "{}: the server does not make commits durable (fsync is {fsync:?}, synchronous_commit {commit:?}); set both to 'on' \
                 for the user or the database",
                self.told
            )));
        }
        Ok(())
    }

    fn make_table(&self) -> Result<()> {
        let there = format!("SELECT to_regclass('{OFFERS}') IS NOT NULL");
        let is_there = || Ok::<_, Error>(self.rows(&there)?.first().and_then(|row| row.get(0)) == Some("t"));
        if is_there()? {
            return Ok(());
        }
        match self.send(SCHEMA) {
            Ok(_) => Ok(()),
            // Another process makes it at the same time.
            Err(_) if is_there()? => Ok(()),
            Err(failure) => Err(failure.error(&self.told)),
        }
    }

    /// The connection, which is made if there is none.
    fn connected(&self) -> Result<Live> {
        let mut live = waiting::lock(&self.live)?;
        if let Some(live) = live.as_ref().filter(|live| !live.client.is_closed()) {
            return Ok(live.clone());
        }
        let (config, secure) = self.address.settings()?;
        let warned = Arc::new(AtomicU64::new(0));
        let client = match secure {
            None => self.connect(config, NoTls, warned.clone())?,
            Some(secure) => self.connect(config, secure, warned.clone())?,
        };
        let made = Live { client: Arc::new(client), warned, turn: Arc::default() };
        *live = Some(made.clone());
        Ok(made)
    }

    /// Connects, and has the thread take in what the server sends.
    fn connect<T>(&self, config: Config, tls: T, warned: Arc<AtomicU64>) -> Result<Client>
    where
        T: MakeTlsConnect<Socket, TlsConnect: TlsConnect<Socket, Future: Send> + Send, Stream: Send> + Send + 'static,
    {
        let made = self.thread.wait(async move { config.connect(tls).await }).map_err(NoAnswer::error)?;
        let (client, mut connection) = made.map_err(|e| {
            let what = with_causes(&e, ": ");
            Error::unavailable(format!("{}: the server of the log cannot be reached: {what}", self.told))
        })?;
        self.thread.beside(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && *notice.code() == SqlState::WARNING
                {
                    warned.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        Ok(client)
    }

    /// Has the server carry out a statement.
    fn send(&self, statement: &str) -> Result<Vec<SimpleQueryMessage>, SqlFailure> {
        let live = self.connected().map_err(|e| SqlFailure::Silent(NoAnswer::Unsent(e)))?;
        // Others may use the connection beside this: then they are warned, too.
        let before = live.warned.load(Ordering::SeqCst);
        self.env.metrics.log_requests.add(1);
        let (client, text) = (live.client.clone(), statement.to_owned());
        let answer = self.thread.wait(async move { client.simple_query(&text).await });
        let lost = |e: &tokio_postgres::Error| {
            SqlFailure::Silent(NoAnswer::Sent(Error::unavailable(format!(
                "the server's answer was lost: {}",
                with_causes(e, ": ")
            ))))
        };
        match answer {
            Ok(Ok(messages)) if live.warned.load(Ordering::SeqCst) > before => {
                drop(messages);
                let what = "the server did not wait for its standby";
                Err(SqlFailure::Silent(NoAnswer::Sent(Error::unavailable(what))))
            }
            Ok(Ok(messages)) => Ok(messages),
            Ok(Err(e)) => match e.as_db_error() {
                Some(told) => Err(SqlFailure::Refused(Some(told.code().clone()), told.message().to_owned())),
                None => {
                    self.forget(&live);
                    Err(lost(&e))
                }
            },
            Err(none) => {
                self.forget(&live);
                Err(SqlFailure::Silent(none))
            }
        }
    }

    /// Does not use a connection again.
    fn forget(&self, live: &Live) {
        let mut there = self.live.lock();
        if there.as_ref().is_some_and(|there| Arc::ptr_eq(&there.client, &live.client)) {
            *there = None;
        }
    }

    /// The rows that a statement finds, which changes nothing: it is sent again if the connection broke.
    fn rows(&self, statement: &str) -> Result<Vec<SimpleQueryRow>> {
        let answer = match self.send(statement) {
            Err(SqlFailure::Silent(NoAnswer::Sent(e))) if e.kind() != ErrorKind::Cancelled => self.send(statement),
            other => other,
        };
        Ok(rows_of(answer.map_err(|failure| failure.error(&self.told))?).collect())
    }

    /// Waits for the turn, and returns what a statement finds in it, if it has come.
    fn take_turn(&self, then: &str) -> Result<Option<Vec<Row>>> {
        let live = self.connected()?;
        let key = self.lock();
        let statement = format!(
            "{BEGIN}; SET LOCAL lock_timeout = '{WAIT_FOR_TURN}'; SET LOCAL idle_in_transaction_session_timeout = '{TURN_OF_STOPPED}'; \
             SELECT pg_advisory_xact_lock({key}); {then}"
        );
        let Some(found) = self.in_turn(&live, &statement)? else { return Ok(None) };
        self.begin_turn(live);
        // The lock's own answer has one column.
        let rows = rows_of(found).filter(|row| row.len() > 1);
        self.parsed(rows).map(Some)
    }

    /// The lock that a process has whose turn it is.
    fn lock(&self) -> i64 {
        (self.id >> 64) as i64 ^ self.id as i64
    }

    /// What a statement returns that waits for a turn; `None` if it waited for too long.
    fn in_turn(&self, live: &Live, statement: &str) -> Result<Option<Vec<SimpleQueryMessage>>> {
        self.leave_turn(live);
        match self.send(statement) {
            Ok(messages) => Ok(Some(messages)),
            Err(SqlFailure::Silent(NoAnswer::Unsent(e))) => Err(e),
            Err(_) => {
                drop(self.send("ROLLBACK"));
                Ok(None)
            }
        }
    }

    /// The transaction that holds the lock is open: it ends when a row is put, or soon.
    fn begin_turn(&self, live: Live) {
        let number = {
            let mut turn = live.turn.lock();
            *turn = (turn.0 + 1, true);
            turn.0
        };
        self.thread.beside(async move {
            tokio::time::sleep(TURN).await;
            let mut rollback = pin!(live.client.simple_query("ROLLBACK"));
            // It is sent before the turn is known to be over: a row that is put after that is not part of the transaction.
            let sent = poll_fn(|context| {
                let mut turn = live.turn.lock();
                let lasts = turn.0 == number && std::mem::take(&mut turn.1);
                Poll::Ready(lasts.then(|| rollback.as_mut().poll(context).is_pending()))
            });
            if sent.await == Some(true) {
                drop(rollback.await);
            }
        });
    }

    /// Ends a transaction that holds nothing, without waiting for the answer.
    fn end_empty(&self, live: Live) {
        self.thread.beside(async move { drop(live.client.simple_query("COMMIT").await) });
    }

    /// Lets a turn go that lasts.
    fn leave_turn(&self, live: &Live) {
        if Self::turn_ends(live) {
            drop(self.send("ROLLBACK"));
        }
    }

    /// Whether a turn lasts, which is over now.
    fn turn_ends(live: &Live) -> bool {
        std::mem::take(&mut live.turn.lock().1)
    }

    /// What finds the rows of the cell that meet a condition.
    fn finding(&self, payload: &str, condition: &str) -> String {
        let cell = uuid(self.id);
        format!(
            "SELECT number, replace(stamp::text, '-', ''), head, {payload} FROM {TABLE} WHERE cell = {cell} AND {condition} ORDER BY number"
        )
    }

    /// What finds the row `known`, without its content, and those behind it.
    fn finding_after(&self, CellPlace { number, stamp }: CellPlace) -> String {
        let payload =
            format!("CASE WHEN number = {number} AND stamp = {} THEN ''::bytea ELSE payload END", uuid(stamp));
        self.finding(&payload, &format!("number BETWEEN {number} AND {}", number.saturating_add(ROWS_MAX)))
    }

    fn parsed(&self, rows: impl Iterator<Item = SimpleQueryRow>) -> Result<Vec<Row>> {
        let bad = || Error::corrupt(format!("{}: the table {TABLE} has a row of another kind", self.told));
        rows.map(|row| parse(&row).ok_or_else(bad)).collect()
    }

    /// What rows say that were found with [`Self::finding_after`]; the whole value if that is not enough.
    fn news_of(&self, known: Option<CellPlace>, rows: Vec<Row>) -> Result<CellNews> {
        if let Some(news) = news(known, rows)? {
            return Ok(news);
        }
        let newest = format!("(SELECT max(number) FROM {TABLE} WHERE cell = {} AND head)", uuid(self.id));
        let whole = self.finding("payload", &format!("number BETWEEN {newest} AND {newest} + {ROWS_MAX}"));
        news(None, self.found(&whole)?)?.ok_or_else(|| empty(&self.told))
    }

    /// What deletes offers.
    fn deleting(&self, offers: &[EntryId]) -> String {
        let ids: Vec<String> = offers.iter().map(|id| uuid(id.0)).collect();
        format!("DELETE FROM {OFFERS} WHERE cell = {} AND id IN ({})", uuid(self.id), ids.join(", "))
    }

    fn found(&self, query: &str) -> Result<Vec<Row>> {
        self.parsed(self.rows(query)?.into_iter())
    }
}

fn rows_of(messages: Vec<SimpleQueryMessage>) -> impl Iterator<Item = SimpleQueryRow> {
    messages.into_iter().filter_map(|message| if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None })
}

fn parse(row: &SimpleQueryRow) -> Option<Row> {
    let text = |at| row.try_get(at).ok().flatten();
    let place = CellPlace { number: text(0)?.parse().ok()?, stamp: u128::from_str_radix(text(1)?, 16).ok()? };
    Some(Row { place, head: text(2)? == "t", content: from_hex(text(3)?.strip_prefix("\\x")?)?.into() })
}

/// Whether an error of the server says that another process came first, or is about to.
fn is_passed(code: &SqlState) -> bool {
    let lost = [SqlState::UNIQUE_VIOLATION, SqlState::T_R_SERIALIZATION_FAILURE];
    let waits = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    lost.contains(code) || waits.contains(code)
}

/// Whether an error of the server says that the statement was not carried out.
fn is_definite(code: &SqlState) -> bool {
    [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::QUERY_CANCELED, SqlState::INSUFFICIENT_PRIVILEGE].contains(code)
}

impl LogCell for PostgresCell {
    fn has_turns(&self) -> bool {
        true
    }

    fn read_in_turn(&self, known: Option<&Tag>) -> Result<CellNews> {
        let place = known.map(CellPlace::of).transpose()?;
        let query = place.map(|place| self.finding_after(place));
        match self.take_turn(query.as_deref().unwrap_or_default())? {
            Some(rows) => self.news_of(place, rows),
            None => self.read(known),
        }
    }

    fn read(&self, known: Option<&Tag>) -> Result<CellNews> {
        let known = known.map(CellPlace::of).transpose()?;
        let rows = known.map(|known| self.found(&self.finding_after(known))).transpose()?;
        self.news_of(known, rows.unwrap_or_default())
    }

    fn end_turn(&self) {
        let live = self.live.lock().clone();
        if let Some(live) = live {
            self.leave_turn(&live);
        }
    }

    fn takes_offers(&self) -> bool {
        true
    }

    fn read_offering(&self, known: &Tag, id: EntryId, offer: &Bytes) -> Result<CellTurn> {
        let place = CellPlace::of(known)?;
        let live = self.connected()?;
        let (cell, id, payload, lock) = (uuid(self.id), uuid(id.0), to_hex(offer), self.lock());
        // Each statement sees what was committed before it began: the rows are at least as new as the offers.
        let statement = format!(
            "BEGIN; INSERT INTO {OFFERS} (cell, id, payload) VALUES ({cell}, {id}, '\\x{payload}'::bytea) ON CONFLICT DO NOTHING; COMMIT; \
             BEGIN; SET LOCAL lock_timeout = '{WAIT_FOR_TURN}'; SELECT pg_advisory_xact_lock_shared({lock}); COMMIT; \
             {BEGIN}; SET LOCAL idle_in_transaction_session_timeout = '{TURN_OF_STOPPED}'; \
             WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock({lock}) AS won \
             WHERE EXISTS (SELECT 1 FROM {OFFERS} WHERE cell = {cell} AND id = {id})) \
             SELECT 'offer', payload FROM turn, {OFFERS} WHERE won AND cell = {cell}; {}",
            self.finding_after(place)
        );
        let Some(found) = self.in_turn(&live, &statement)? else {
            // A process that waits for too long goes on without a turn.
            return Ok(CellTurn { news: self.read(Some(known))?, leads: true, offers: Vec::new() });
        };
        let (rows, others): (Vec<_>, Vec<_>) = rows_of(found).partition(|row| row.len() == 4);
        let offers = others.iter().filter(|row| row.len() == 2).filter_map(|row| row.try_get(1).ok().flatten());
        let offers: Vec<Bytes> = offers.filter_map(|text| Some(from_hex(text.strip_prefix("\\x")?)?.into())).collect();
        let leads = !offers.is_empty();
        match leads {
            true => self.begin_turn(live),
            false => self.end_empty(live),
        }
        let news = self.news_of(Some(place), self.parsed(rows.into_iter())?)?;
        Ok(CellTurn { news, leads, offers })
    }

    fn withdraw(&self, offers: &[EntryId]) {
        let in_turn = self.live.lock().as_ref().is_some_and(Self::turn_ends);
        let end = if in_turn { "; COMMIT" } else { "" };
        drop(self.send(&format!("{}{end}", self.deleting(offers))));
    }

    fn put(&self, row: &CellRow, known: Option<&Tag>, offers: &[EntryId]) -> Result<Tag> {
        let (known, next) = CellPlace::after(known, &self.env)?;
        let (head, content) = row.parts();
        let (cell, number, stamp) = (uuid(self.id), next.number, uuid(next.stamp));
        // A statement sees the rows that were there when it began, but finds the place of its own as it is now: others may have
        // added a row there since, and deleted it. The row before it is locked: that finds out if it was deleted, too.
        let before = match known {
            None => format!("(SELECT WHERE NOT EXISTS (SELECT 1 FROM {TABLE} WHERE cell = {cell})) AS none"),
            Some(CellPlace { number, stamp }) => {
                let stamp = uuid(stamp);
                let row = format!("cell = {cell} AND number = {number} AND stamp = {stamp}");
                format!("(SELECT FROM {TABLE} WHERE {row} FOR KEY SHARE) AS before")
            }
        };
        let content = to_hex(content);
        let insert = format!(
            "INSERT INTO {TABLE} (cell, number, stamp, head, payload) SELECT {cell}, {number}, {stamp}, {head}, '\\x{content}'::bytea \
             FROM {before} ON CONFLICT DO NOTHING"
        );
        let done = match offers {
            [] => String::new(),
            offers => {
                let there = format!(
                    "EXISTS (SELECT 1 FROM {TABLE} WHERE cell = {cell} AND number = {number} AND stamp = {stamp})"
                );
                format!("; {} AND {there}", self.deleting(offers))
            }
        };
        let live = self.connected()?;
        let in_turn = Self::turn_ends(&live);
        // Whatever state the connection is in: what is answered is committed.
        let begin = if in_turn { String::new() } else { format!("{BEGIN}; ") };
        let answer = self.send(&format!("{begin}{insert}{done}; COMMIT"));
        if matches!(answer, Err(SqlFailure::Refused(..))) {
            drop(self.send("ROLLBACK"));
        }
        match answer {
            Ok(messages) => {
                let mut counts = messages.iter().filter_map(|message| match message {
                    SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
                    _ => None,
                });
                // The first statement inserts the row, or the one after the beginning of the transaction.
                if counts.nth(usize::from(!in_turn)) == Some(1) { Ok(next.tag()) } else { Err(passed()) }
            }
            Err(SqlFailure::Refused(Some(code), _)) if is_passed(&code) => Err(passed()),
            Err(SqlFailure::Refused(code, text)) => {
                let text = format!("{}: {text}", self.told);
                match code.is_some_and(|code| is_definite(&code)) {
                    true => Err(Error::unavailable(text)),
                    false => Err(Error::in_doubt(text)),
                }
            }
            Err(SqlFailure::Silent(NoAnswer::Unsent(e))) => Err(e),
            Err(SqlFailure::Silent(NoAnswer::Sent(e))) => {
                Err(Error::in_doubt(format!("{}: {}", self.told, e.message())))
            }
        }
    }

    fn trim(&self, head: &Tag) -> Result<()> {
        let before = CellPlace::of(head)?.number;
        let cell = uuid(self.id);
        let rows = format!("DELETE FROM {TABLE} WHERE cell = {cell} AND number < {before}");
        self.rows(&format!("{rows}; DELETE FROM {OFFERS} WHERE cell = {cell}")).map(drop)
    }

    fn remains(&self) -> Result<u64> {
        let cell = uuid(self.id);
        let newest = format!("(SELECT max(number) FROM {TABLE} WHERE cell = {cell} AND head)");
        let rows = format!("SELECT count(*) FROM {TABLE} WHERE cell = {cell} AND number < {newest}");
        let found = self.rows(&format!("SELECT ({rows}) + (SELECT count(*) FROM {OFFERS} WHERE cell = {cell})"))?;
        let count = found.first().and_then(|row| row.get(0)?.parse().ok());
        count.ok_or_else(|| Error::corrupt(format!("{}: the server does not count the rows of its tables", self.told)))
    }

    fn advice(&self) -> Result<Vec<String>> {
        let rows = self.rows("SELECT current_setting('synchronous_standby_names')")?;
        let alone = rows.first().and_then(|row| row.get(0)).is_none_or(str::is_empty);
        let advice = "the server has no synchronous standby: if its disk is lost, or a standby takes over, so may be the last commits; \
                      name one in synchronous_standby_names";
        Ok(alone.then(|| advice.to_owned()).into_iter().collect())
    }

    fn address(&self) -> &str {
        &self.told
    }
}
