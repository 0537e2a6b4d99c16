"""The counters of a worker's connections. This module does not import PyTorch, because the testbed
too reads the counters' names here."""

from __future__ import annotations

from collections.abc import Iterable

from agglab.systems.gloo.tcp import Info

OWN_COUNTERS = {
    "repeated_in_vain": (
        "segments",
        "segments sent again although they had arrived, as the receiver reported (duplicate SACK)",
    ),
    "window_samples": (
        "samples",
        "samples of the congestion window of a connection that was sending",
    ),
    "window_segments": (
        "segments",
        "the congestion windows of all samples added up: over `window_samples` it is the mean",
    ),
}
"""The counters that Gloo's workers have besides those of every endpoint (hosts/endpoint.py). For
Gloo, the latter are derived from TCP's counts; see `counted`."""
HEADER_BYTES = 14 + 20 + 32
"""The length of the headers of Ethernet, IPv4, and TCP with time stamps."""


def counted(infos: Iterable[Info]) -> dict[str, int]:
    """Returns the counters that hosts/endpoint.py names, summed over all connections of a worker. A
    packet is a TCP segment here. Bytes are the payload, which the kernel counts, and HEADER_BYTES
    for each segment. So the bytes of selective acknowledgements are not counted."""
    found = dict.fromkeys(
        ("sent", "received", "retransmitted", "timeouts", "bytes_sent", "bytes_received"), 0
    )
    in_vain = 0
    for info in infos:
        found["sent"] += info.segs_out
        found["received"] += info.segs_in
        found["retransmitted"] += info.total_retrans
        found["timeouts"] += info.total_rto
        found["bytes_sent"] += info.bytes_sent + info.segs_out * HEADER_BYTES
        found["bytes_received"] += info.bytes_received + info.segs_in * HEADER_BYTES
        in_vain += info.dsack_dups
    return {**found, "repeated_in_vain": in_vain, "duplicates": 0, "late": 0, "malformed": 0}
