"""The common parts of systems whose jobs share the slots of switches, with a server for the rest.

See docs/pooling.md.

base        the answers that follow from that, for a system to inherit
keys        their keys of a scenario, and their values
trees       from workers over switches to a job's server
plan        table entries
load        what a round puts on links
scales      which chunks do not fit the scale of integers
truth       what results must be
counters    of the switches
diagnosis   who is missing
attack      payloads that an outsider forges
"""
