"""Finished parts from earlier lessons, written to be read, for later lessons to build on."""
