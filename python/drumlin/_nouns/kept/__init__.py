"""What is kept in step with tables: indexes, layouts and views."""
