"""The report: contents (numbers only) -> figures -> one page that needs nothing else."""
