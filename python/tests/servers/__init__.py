"""Servers for the tests of stores in buckets: real ones on loopback, and a proxy in front of them that fails as networks do."""
