"""Waits: whatever a call waits for, Ctrl-C ends it. Every public call is stopped at each of its requests, by a bucket
that answers no more from there on. No test looks at a clock: what does not end is ended by a watchdog, which fails the
test."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

PRELUDE = """
    import faulthandler, io, os, signal, sys, threading
    sys.path.insert(0, sys.argv[1])
    # What goes on for good is shown, and fails the test.
    faulthandler.dump_traceback_later(600, exit=True)
    # A shell lets what it runs in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import drumlin
    import pyarrow as pa
    from servers.memory import Bucket, error, serve

    main = threading.get_ident()

    def interrupted_at(bucket, at, call):
        \"\"\"Runs a call of which the requests from ``at`` on get no answer, with Ctrl-C once the first of them has
        come. Returns whether there was such a request, and what the call raised.\"\"\"
        reached, release, lock, count = threading.Event(), threading.Event(), threading.Lock(), [0]

        def before(method, key):
            with lock:
                mine, count[0] = count[0], count[0] + 1
            if mine == at:
                reached.set()
                signal.pthread_kill(main, signal.SIGINT)
            if mine >= at:
                release.wait()

        bucket.before = before
        raised = None
        try:
            try:
                call()
            except BaseException as error:
                raised = error
            # The signal may come after the last answer that the call needed.
            while reached.is_set() and not isinstance(raised, KeyboardInterrupt):
                release.wait(0.01)
        except KeyboardInterrupt as error:
            raised = error
        finally:
            bucket.before = lambda method, key: None
            release.set()
        return reached.is_set(), raised
"""


def run(program: str, *arguments: str) -> str:
    """Runs a program in a process of its own; returns what it prints."""
    source = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    command = [sys.executable, "-c", source, str(HERE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


EVERY_CALL = """
    import test_arguments as known

    # They wait for somebody else, not for the bucket, or make nothing that is asked.
    OTHERS = {"ui", "on", "off", "wait_for_triggers", "with_message", "table", "ticket"}
    KEYED = {"upsert", "insert", "increment", "compare_and_set", "delete_keys", "get", "get_many"}

    def given(arguments, names):
        more = {name: known.VALUES[name] for name in names if name in known.VALUES and name not in arguments}
        values = {**arguments, **more}
        return {name: value for name, value in values.items() if value is not None}

    def finish(value):
        \"\"\"Asks a result for everything that it has.\"\"\"
        if isinstance(value, dict):
            for one in value.values():
                finish(one)
        elif isinstance(value, drumlin.Transaction):
            value.tree.put("n", 3)
            value.commit()
        elif hasattr(value, "fetchall"):
            value.fetchall()
        elif hasattr(value, "to_arrow"):
            value.to_arrow()
        elif hasattr(value, "to_table"):
            value.to_table()
        elif hasattr(value, "next") and hasattr(value, "seq"):
            value.next(0)

    def calls():
        nouns = {"store": lambda s: s, "table": lambda s: s.table("t"), "tree": lambda s: s.tree}
        groups = [(noun, getattr(known, noun.upper()), get) for noun, get in nouns.items()]
        for noun, of, get in groups:
            for name, arguments in of.items():
                if name in OTHERS:
                    continue
                def call(store, name=name, arguments=arguments, get=get, noun=noun):
                    owner = store.table("k") if noun == "table" and name in KEYED else get(store)
                    method = getattr(owner, name)
                    values = dict(arguments)
                    if name == "import_":
                        values["file"] = io.BytesIO(b'{"path": "m", "payload": 1}\\n')
                    if name == "export":
                        values["file"] = io.BytesIO()
                    if name == "purge":
                        values["where"] = "id = 1"
                    finish(method(**given(values, known.parameters(method))))
                yield f"{noun}.{name}", call
        yield "open", None
        yield "close", lambda store: store.close()

    with serve(Bucket()) as made:
        with drumlin.open("s3://test/s", storage_options=made.options) as store:
            store.write("t", pa.table(known.ROWS, schema=known.SCHEMA), sort=["id"])
            store.append("t", {"id": list(range(20_000)), "s": [str(n * n) for n in range(20_000)]})
            store.table("k").create(known.SCHEMA, key=["id"])
            store.table("k").upsert({"id": [1, 2], "s": ["a", "b"]})
            store.tree.put("n", 1)
            store.tree.projection("p", "n", key="path", value="payload")
            store.checkpoint()
            store.append("t", {"id": [9], "s": ["x"]})
        template = dict(made.objects)

    waited, wrong = {}, []
    thorough = int(os.environ.get("DRUMLIN_ROUNDS", "0")) > 0
    for name, call in calls():
        at = 0
        while True:
            with serve(Bucket(template)) as bucket:
                where = lambda: drumlin.open("s3://test/s", storage_options=bucket.options, fresh=True)
                if call is None:
                    reached, raised = interrupted_at(bucket, at, where)
                else:
                    store = where()
                    reached, raised = interrupted_at(bucket, at, lambda: call(store))
                if reached and not isinstance(raised, KeyboardInterrupt):
                    wrong.append(f"{name}, request {at}: {raised!r}")
                if not reached:
                    if raised is not None and not isinstance(raised, drumlin.Error):
                        wrong.append(f"{name}: {raised!r}")
                    break
                # What was under way ends first; the store goes on.
                if call is not None and name != "close":
                    store.refresh()
                    store.tree.put("after", 1)
                with where() as again:
                    report = again.verify()
                    if not report.ok:
                        wrong.append(f"{name}, request {at}: {report}")
                if call is not None:
                    store.close()
            waited[name] = at = at + 1
            if not thorough and at > 2:
                break
    assert not wrong, "\\n".join(wrong)
    for name in (
        "open", "close", "store.write", "store.append", "store.read", "store.checkpoint", "store.reclaim",
        "store.verify", "store.drop", "store.transaction", "store.changes", "table.upsert", "table.get",
        "table.delete", "tree.put", "tree.get", "tree.list", "tree.export",
    ):
        assert waited.get(name), (name, waited)
    print(sum(waited.values()))
"""


# faults: stopped call x open, write, upsert, delete, drop, undrop, snapshot, checkpoint, reclaim, read, look-up
# faults: stopped call x nodes, transaction, feed, verify
def test_every_call_is_interrupted_at_each_of_its_requests() -> None:
    assert int(run(EVERY_CALL)) > 100


# faults: stopped call x write
def test_a_commit_that_may_have_been_made_is_noted() -> None:
    told = run("""
        with serve(Bucket()) as bucket:
            store = drumlin.open("s3://test/s", storage_options=bucket.options)
            store.tree.put("n", 0)
            # The first request puts the root: this process knows the one before.
            reached, raised = interrupted_at(bucket, 0, lambda: store.tree.put("n", 1))
            assert reached and isinstance(raised, KeyboardInterrupt), raised
            print(*getattr(raised, "__notes__", []))
            # It was made once the bucket answered.
            store.refresh()
            assert store.tree.get("n") == 1
    """)
    assert "it is not known whether the commit was made" in told


# faults: stopped call x write, nodes
def test_code_of_the_caller_that_waits_is_interrupted() -> None:
    """A generator that waits for input, a file that is a FIFO, a function that computes columns: each is run by the
    thread that sees signals."""
    told = run("""
        import queue, tempfile
        store = drumlin.open("memory://")
        schema = pa.schema([("id", pa.int64())])
        store.write("t", pa.table({"id": [1]}, schema=schema))
        store.table("k").create(schema, key=["id"])
        folder = tempfile.mkdtemp()
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        # A writer that writes nothing.
        writer = os.open(fifo, os.O_RDWR)

        def wait():
            # As Ctrl-C that is pressed while it waits.
            threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
            return os.read(writer, 1)

        def batches():
            yield pa.record_batch({"id": [5]}, schema=schema)
            wait()

        class Waiting(io.RawIOBase):
            def read(self, n=-1):
                return wait()
            def write(self, data):
                return wait()

        def rows():
            return pa.RecordBatchReader.from_batches(schema, batches())

        calls = {
            "write": lambda: store.write("u", rows()),
            "append": lambda: store.append("t", rows()),
            "upsert": lambda: store.table("k").upsert(rows()),
            "import": lambda: store.tree.import_(Waiting()),
            "export": lambda: store.tree.export("**", Waiting()),
            "columns": lambda: store.table("t").add_columns({"new": pa.int64()}, using=lambda batch: wait()),
        }
        store.tree.put("n", 1)
        before = store.seq
        for name, call in calls.items():
            try:
                call()
            except KeyboardInterrupt:
                print(name)
        assert store.seq == before
    """)
    assert told.split() == ["write", "append", "upsert", "import", "export", "columns"]


# faults: stopped call x checkpoint, reclaim
@pytest.mark.parametrize("kind", ["alone", "shared"])
def test_calls_from_functions_that_a_call_calls_get_an_error_for_what_it_holds(tmp_path: Path, kind: str) -> None:
    told = run(
        """
        store = drumlin.open(sys.argv[2], shared=sys.argv[3] == "shared")
        store.table("k").create(pa.schema([("id", pa.int64())]), key=["id"])
        outer = {
            "checkpoint": lambda tell: store.checkpoint(progress=tell),
            "reclaim": lambda tell: store.reclaim(audit=True, progress=tell),
            "purge": lambda tell: store.purge("t", "id = 1", progress=tell),
            "drop_and_reclaim": lambda tell: store.drop_and_reclaim("t", progress=tell),
        }
        inner = {
            "checkpoint": lambda: store.checkpoint(),
            "reclaim": lambda: store.reclaim(),
            "drop_and_reclaim": lambda: store.drop_and_reclaim("nothing", missing_ok=True),
            "purge": lambda: store.purge("t", "id = 1"),
        }
        refused = 0
        for name, call in outer.items():
            for what, within in inner.items():
                store.write("t", {"id": list(range(5000))})
                store.append("t", {"id": [1]})
                store.table("k").upsert({"id": [1]})
                called = []
                def tell(*_):
                    store.tree.put("n", 1)
                    try:
                        called.append(within())
                    except drumlin.Error as error:
                        called.append(error)
                call(tell)
                for answer in called:
                    refuses = isinstance(answer, drumlin.InvalidArgument) and "in progress" in str(answer)
                    assert refuses, (name, what, answer)
                refused += len(called)
        assert refused > 4, refused
        store.checkpoint()
        print("done")
        """,
        str(tmp_path / "s"),
        kind,
    )
    assert told == "done\n"


# faults: throttling x write, checkpoint
def test_a_bucket_that_is_busy_with_the_object_is_asked_again() -> None:
    """S3 answers 409 or 400 with codes that mean `try again`: no call fails for it, or says that something exists."""
    run("""
        import random
        for status, code in ((409, "OperationAborted"), (409, "ConditionalRequestConflict"), (400, "RequestTimeout")):
            for kind in ("blocks/", "catalog/", "log/", "root"):
                for method in ("PUT", "GET", "POST"):
                    with serve(Bucket()) as bucket:
                        store = drumlin.open("s3://test/s", storage_options=bucket.options)
                        times = [0]
                        def before(asked, key):
                            if asked == method and (kind in key or method == "POST") and times[0] < 2:
                                times[0] += 1
                                return error(status, code)
                        bucket.before = before
                        rows = lambda: {"r": [random.random() for _ in range(60_000)]}
                        store.write("t", rows())
                        store.append("t", rows())
                        for n in range(4):
                            store.tree.put(f"n/{n}", random.randbytes(60_000))
                        store.table("t").delete("r < 0.5")
                        store.checkpoint(dead_share_min=0.0)
                        store.reclaim()
                        assert store.verify(deep=True).ok
                        store.close()
    """)


# faults: weak bucket x open
def test_a_failure_for_good_is_no_success_of_others() -> None:
    told = run("""
        with serve(Bucket()) as bucket:
            for answer in (error(412, "PreconditionFailed"), error(501, "NotImplemented")):
                bucket.before = lambda method, key: answer if method == "PUT" and "probe" in key else None
                try:
                    drumlin.open("s3://test/s", storage_options=bucket.options)
                except drumlin.Error as failure:
                    print(type(failure).__name__)
    """)
    assert told.split() == ["Unsupported", "Unsupported"]


# faults: secrets x open
def test_what_a_bucket_cannot_be_is_refused_at_once_and_tells_no_secret() -> None:
    secret = "canary-password-0123456789"
    told = run(
        """
        import subprocess
        secret, nowhere = sys.argv[2], "http://127.0.0.1:1"
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        good = {"endpoint": nowhere, "region": "us-east-1", **keys}
        endpoints = ("127.0.0.1:9000", "minio.local", f"http://u:{secret}@127.0.0.1:1", "http://", "")
        wrong = [{"endpoint": value} for value in endpoints]
        wrong += [{"aws_access_key_id": f"a\\n{secret}"}, {"token": f"x\\r{secret}"}, {"region": "us east"}]
        asked = [("s3://test/a", {**good, **one}) for one in wrong]
        asked += [("gs://test/a", {"google_base_url": "localhost:4443", "skip_signature": "true"})]
        asked += [(uri, good) for uri in ("s3://te st/a", "s3://test/a\\0b", f"s3://u:{secret}@test/a")]
        for uri, options in asked:
            try:
                drumlin.open(uri, storage_options=options)
            except drumlin.InvalidArgument as failure:
                print(failure)
        os.environ["AWS_ENDPOINT_URL"] = f"http://u:{secret}@127.0.0.1:1"
        try:
            drumlin.open("s3://test/a")
        except drumlin.InvalidArgument as failure:
            print(failure)
        for name in ("cpu_threads", "io_threads"):
            try:
                drumlin.open("s3://test/a", storage_options=good, **{name: 10**9})
            except drumlin.InvalidArgument as failure:
                print(failure)
        """,
        secret,
    )
    assert secret not in told
    assert len(told.splitlines()) == 15, told
    assert "at most 1024" in told


FORK = """
    import fcntl
    path = sys.argv[2]
    with drumlin.open(path) as s:
        s.write("t", {"x": [1]})

    def opened(then="pass"):
        program = f"import drumlin, sys; s = drumlin.open({path!r}, mode='write'); {then}; s.close(); print('opened')"
        import subprocess
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    def forked(work):
        \"\"\"What `work` returns in a fork of this process.\"\"\"
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                told = work()
            except BaseException as error:
                told = f"{type(error).__name__}: {error}"
            os.write(writable, str(told).encode())
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable, "rb") as answers:
            told = answers.read().decode()
        os.waitpid(child, 0)
        return told
"""


# faults: fork x open
def test_a_fork_keeps_no_lock_of_its_parent(tmp_path: Path) -> None:
    program = """
        # A writer that is killed while a fork of it lives.
        readable, writable = os.pipe()
        writer = os.fork()
        if writer == 0:
            s = drumlin.open(path)
            s.tree.put("a", 1)
            child = os.fork()
            if child == 0:
                os.close(writable)
                signal.pause()
            os.write(writable, b"%d" % child)
            signal.pause()
        child = int(os.read(readable, 20))
        assert "process %d" % writer in opened(), opened()
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        print(opened())
        os.kill(child, signal.SIGKILL)

        # A daemon: the parent leaves, and its fork opens the store.
        daemon = os.fork()
        if daemon == 0:
            s = drumlin.open(path)
            parent = os.getpid()
            if os.fork():
                os._exit(0)
            # One that ends closes pipes before it lets go of locks, and only then are its children given to another.
            while os.getppid() == parent:
                threading.Event().wait(0.01)
            again = drumlin.open(path)
            again.tree.put("daemon", 1)
            # The copy of what the parent had is no store any more, and takes no lock with it when it goes.
            del s
            import gc
            gc.collect()
            told = opened()
            assert f"process {os.getpid()}" in told, told
            again.close()
            open(path + ".done", "w").write(opened())
            os._exit(0)
        os.waitpid(daemon, 0)
        while not os.path.exists(path + ".done") or not open(path + ".done").read():
            threading.Event().wait(0.01)
        print(open(path + ".done").read())
    """
    told = run(textwrap.dedent(FORK) + textwrap.dedent(program), str(tmp_path / "s"))
    assert told.split() == ["opened", "opened"]


# faults: fork x open
def test_a_fork_leaves_its_parent_its_lock_and_locked_names_who_has_it(tmp_path: Path) -> None:
    program = """
        s = drumlin.open(path)
        told = forked(lambda: drumlin.open(path))
        assert told.startswith("Locked") and f"process {os.getpid()}, from which this process was forked" in told, told
        # What the fork dropped was a copy: the lock is there.
        assert f"by process {os.getpid()}" in opened(), opened()
        s.tree.put("b", 2)
        # Another descriptor of the lock's file changes nothing.
        with open(os.path.join(path, "lock")) as lock:
            assert lock.read() == f"process {os.getpid()}"
        assert f"by process {os.getpid()}" in opened(), opened()
        s.close()
        # A handle that is closed is not who has the lock.
        import subprocess
        other = subprocess.Popen(
            [sys.executable, "-c", f"import drumlin; s = drumlin.open({path!r}); print('there', flush=True); input()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout.readline() == "there\\n"
        try:
            drumlin.open(path)
        except drumlin.Locked as error:
            assert f"process {other.pid}" in str(error) and "this process" not in str(error), error
            print("locked")
        told = forked(lambda: drumlin.open(path))
        assert f"process {other.pid}" in told and "was forked" not in told, told
        other.communicate("\\n")
        print(opened())
    """
    told = run(textwrap.dedent(FORK) + textwrap.dedent(program), str(tmp_path / "s"))
    assert told.split() == ["locked", "opened"]


# faults: failed sync x write, checkpoint, reclaim
def test_a_process_with_too_many_open_files_goes_on_once_it_has_closed_some(tmp_path: Path) -> None:
    told = run(
        """
        import resource
        store = drumlin.open(sys.argv[2])
        store.write("t", {"x": list(range(1000))})
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        failed = 0
        for left in range(0, 14):
            held = []
            try:
                while True:
                    held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            for descriptor in held[len(held) - left:]:
                os.close(descriptor)
            calls = {
                "write": lambda: store.write("u", {"x": list(range(20_000))}),
                "checkpoint": lambda: store.checkpoint(),
                "put": lambda: store.tree.put("n", left),
                "reclaim": lambda: store.reclaim(),
            }
            for name, call in calls.items():
                try:
                    call()
                except drumlin.Unavailable as error:
                    failed += 1
            for descriptor in held[:len(held) - left]:
                os.close(descriptor)
            # Nothing was closed or poisoned.
            store.tree.put("after", left)
            store.write("t", {"x": list(range(1000))})
            store.checkpoint()
            store.reclaim()
        assert failed > 3, failed
        assert store.verify(deep=True).ok
        store.close()
        print("done")
        """,
        str(tmp_path / "s"),
    )
    assert told == "done\n"


@pytest.mark.parametrize("kind", ["alone", "shared"])
def test_signals_in_between_do_no_harm(tmp_path: Path, kind: str) -> None:
    program = """
        store = drumlin.open(sys.argv[2], shared=sys.argv[3] == "shared")
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        for n in range(40):
            store.tree.put(f"p/{os.getpid()}/{n}", n)
            store.append("t", {"x": list(range(20_000))})
            store.read("t", where="x = 5").to_arrow()
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(store.tree.count(f"p/{os.getpid()}/*"))
        store.close()
    """
    path = str(tmp_path / "s")
    run(
        "s = drumlin.open(sys.argv[2], shared=sys.argv[3] == 'shared'); s.write('t', {'x': [1]}); s.close()",
        path,
        kind,
    )
    source = textwrap.dedent(PRELUDE) + textwrap.dedent(program)
    command = [sys.executable, "-c", source, str(HERE), path, kind]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3 if kind == "shared" else 1)
    ]
    for process in processes:
        out, err = process.communicate(timeout=900)
        assert (out, process.returncode) == ("40\n", 0), err[-3000:]
    assert os.path.isdir(path)
