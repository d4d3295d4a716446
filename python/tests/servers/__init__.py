"""Servers for the tests of stores in buckets: real ones on loopback, and a proxy that fails as networks do."""
