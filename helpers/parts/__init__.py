"""Finished parts from earlier lessons, for later lessons to build on."""
