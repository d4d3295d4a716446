"""A small store that tests of first guesses share."""

import datetime as dt

import drumlin


def market() -> drumlin.Store:
    """A store in memory with two tables of prices and one of users, by key."""
    store = drumlin.open("memory://")
    rows = {"ts": [dt.datetime(2026, 1, day) for day in (1, 2, 3)], "close": [1.0, 60.0, 3.0], "sym": ["A", "B", "A"]}
    store.write("prices/us/AAPL", rows, sort="ts")
    store.append("prices/us/AAPL", {"ts": [dt.datetime(2026, 1, 4)], "close": [4.0], "sym": ["B"]})
    store.write("prices/us/MSFT", rows)
    users = store.table("users")
    users.create({"id": int, "email": "text", "born": dt.date}, key="id")
    users.upsert([{"id": n, "email": f"u{n}", "born": None} for n in range(5)])
    return store
