"""The command ``drumlin sql``: statements over a store, from the command line or a prompt."""
