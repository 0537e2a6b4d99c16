"""Reproduces figures from the literature. Each is a scenario in figures/, which is run on real
links and in virtual time. One page shows both results (docs/figures.md)."""
