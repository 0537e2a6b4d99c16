"""The figures of the literature: each a scenario in figures/, run on real links and in virtual
time, and one page that shows both (docs/figures.md)."""
