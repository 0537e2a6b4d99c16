"""Runs an experiment: a scenario becomes a network, agents, measurements and a result folder."""
