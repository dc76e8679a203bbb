"""Finished parts from earlier lessons, for later ones to build on."""
