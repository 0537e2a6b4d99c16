"""Settings with which shipped scenarios that take minutes run in the tests."""

MINUTES = {"million-values": ("topology.pods=2", "topology.racks=3", "workload.elements=100_000")}
