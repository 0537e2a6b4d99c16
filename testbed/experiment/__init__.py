"""Carries out checked scenarios: builds the network, conducts the run, judges it and fills a result
folder. Sweeps and comparisons run here, in several processes or on several machines."""
