"""The figures from the literature. Each is a scenario in figures/, run on real links and in virtual
time, and one page shows both (docs/figures.md)."""
