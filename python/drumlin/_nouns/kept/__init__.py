"""What is kept in step with tables: indexes and views."""
