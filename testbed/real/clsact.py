"""A classifier for received frames that runs after the interface's packet sockets. It uses clsact
of the kernel's traffic control.

It is set up by rtnetlink (linux/rtnetlink.h, linux/pkt_cls.h), because `tc` loads programs only
from files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct

RTM_NEWQDISC, RTM_DELQDISC, RTM_NEWTFILTER = 36, 37, 44
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400
NLMSG_ERROR = 2
TC_H_CLSACT, CLSACT_HANDLE, CLSACT_INGRESS = 0xFFFFFFF1, 0xFFFF0000, 0xFFFFFFF2
TCA_KIND, TCA_OPTIONS = 1, 2
TCA_BPF_FD, TCA_BPF_NAME, TCA_BPF_FLAGS = 6, 7, 8
TCA_BPF_FLAG_ACT_DIRECT = 1
PRIORITY, ETH_P_ALL = 1, 3


class Classifier:
    """An eBPF program that the kernel runs on every frame that an interface receives, from
    construction until `close`.

    program: its descriptor. The interface is looked up in the caller's network namespace. Raises
    OSError if the kernel has no clsact or no cls_bpf.
    """

    def __init__(self, program: int, interface: str) -> None:
        self._index = socket.if_nametoindex(interface)
        # Of the interface's namespace for good, wherever `close` is called.
        self._route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        try:
            self._request(RTM_NEWQDISC, CLSACT_HANDLE, TC_H_CLSACT, 0, CLSACT)
        except OSError:
            self._route.close()
            raise
        try:
            info = PRIORITY << 16 | socket.htons(ETH_P_ALL)
            self._request(RTM_NEWTFILTER, 0, CLSACT_INGRESS, info, _filter(program))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Removes the classifier. The interface itself may already be gone."""
        with self._route, contextlib.suppress(OSError):
            self._request(RTM_DELQDISC, CLSACT_HANDLE, TC_H_CLSACT, 0, CLSACT)

    def _request(self, kind: int, handle: int, parent: int, info: int, attributes: bytes) -> None:
        flags = NLM_F_REQUEST | NLM_F_ACK
        if kind != RTM_DELQDISC:
            flags |= NLM_F_CREATE | NLM_F_EXCL
        place = struct.pack("=BxxxiIII", socket.AF_UNSPEC, self._index, handle, parent, info)
        body = place + attributes
        self._route.sendto(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body, (0, 0))
        answer = self._route.recv(65536)
        assert struct.unpack_from("=IH", answer)[1] == NLMSG_ERROR, "how a request is acknowledged"
        refused = -int(struct.unpack_from("=i", answer, 16)[0])
        if refused:
            # The kernel's word for a kind it has no module of is "no such file".
            reason = "not in this kernel" if refused == errno.ENOENT else os.strerror(refused)
            raise OSError(refused, f"{REQUESTED[kind]}: {reason}")


def _filter(program: int) -> bytes:
    options = (
        _attribute(TCA_BPF_FD, struct.pack("=I", program))
        + _attribute(TCA_BPF_NAME, b"agglab-copies\0")
        + _attribute(TCA_BPF_FLAGS, struct.pack("=I", TCA_BPF_FLAG_ACT_DIRECT))
    )
    return _attribute(TCA_KIND, b"bpf\0") + _attribute(TCA_OPTIONS, options)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


CLSACT = _attribute(TCA_KIND, b"clsact\0")
REQUESTED = {RTM_NEWQDISC: "clsact", RTM_DELQDISC: "clsact", RTM_NEWTFILTER: "cls_bpf"}
