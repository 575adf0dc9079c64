"""Comparison of the networks of groups of rows: docs/design/groups.md."""
