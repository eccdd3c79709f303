"""The native command line: one command a file."""
