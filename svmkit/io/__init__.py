"""File formats: one a file, each the only one that knows it."""
