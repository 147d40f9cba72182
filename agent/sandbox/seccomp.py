"""The filter of system calls: a small program in the kernel's own byte code (classic BPF).

It closes what neither file rights nor namespaces close: sockets that lead out of a sandbox, keyrings, `io_uring`
(which does all of this without system calls), and a few doors of the kernel that no build needs. Whoever starts a
command installs it; nothing can take it away again.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Where the number of the call, the machine and the arguments (8 bytes each) stand in `struct seccomp_data`."""
_X32 = 0x40000000
"""From here on numbers of the 64-bit machine's 32-bit variant, with other meanings."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _RAW, _SEQUENCE = 1, 2, 3, 5
_SOCKET_TYPE = 0xF
_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into somebody's terminal."""
_NAMES = (
    *(
        "ioctl",
        "socket",
        "socketpair",
        "prlimit64",
        "kexec_load",
        "kexec_file_load",
        "add_key",
        "request_key",
        "keyctl",
    ),
    *("perf_event_open", "bpf", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
)
_GENERIC = (29, 198, 199, 261, 104, 294, 217, 218, 219, 241, 280, 282, 425, 426, 427)
_NUMBERS = {
    "x86_64": (16, 41, 53, 302, 246, 320, 248, 249, 250, 298, 321, 323, 425, 426, 427),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
"""The numbers of these calls, in their order, by machine."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
_REFUSED = (
    "kexec_load",
    "kexec_file_load",
    "add_key",
    "request_key",
    "keyctl",
    "perf_event_open",
    "bpf",
    "userfaultfd",
)
_MISSING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
"""Programs go on without these if told that the kernel has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """Which sockets can be opened. Pairs of connected ones always can; they lead nowhere else."""

    internet: bool
    local: bool
    """Those with a path or a name on this machine."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    value: int
    then: int = 0
    """How many instructions to leave out if the comparison holds, and if it does not."""
    otherwise: int = 0

    def __bytes__(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.then, self.otherwise, self.value)


def socket_filter(machine: str, sockets: Sockets) -> bytes:
    """The program for a machine as `platform.machine` names it; empty where its numbers are not known."""
    if machine not in _NUMBERS:
        return b""
    numbers = dict(zip(_NAMES, _NUMBERS[machine], strict=True))
    program = [
        _Instruction(_LOAD, _ARCHITECTURE),
        *_unless_equal(_ARCHITECTURES[machine], [_refuse(errno.ENOSYS)]),
        _Instruction(_LOAD, _NUMBER),
        *_at_least(_X32, [_refuse(errno.ENOSYS)]),
        *(part for name in _REFUSED for part in _if_equal(numbers[name], [_refuse(errno.EPERM)])),
        *(part for name in _MISSING for part in _if_equal(numbers[name], [_refuse(errno.ENOSYS)])),
        *_if_equal(numbers["ioctl"], _ioctl()),
        *_if_equal(numbers["prlimit64"], _prlimit()),
        *_if_equal(numbers["socket"], _socket(sockets)),
        *_if_equal(numbers["socketpair"], _pair(sockets)),
        _Instruction(_RETURN, _ALLOW),
    ]
    return b"".join(map(bytes, program))


def _socket(sockets: Sockets) -> list[_Instruction]:
    internet = _Instruction(_RETURN, _ALLOW) if sockets.internet else _refuse(errno.ENETUNREACH)
    local = _Instruction(_RETURN, _ALLOW) if sockets.local else _refuse(errno.EACCES)
    return [
        _argument(0),
        *_if_equal(_AF_INET, [internet]),
        *_if_equal(_AF_INET6, [internet]),
        *_if_equal(_AF_UNIX, [local]),
        # the kernel's list of network devices may be asked for; none of the other kinds of netlink
        *_if_equal(_AF_NETLINK, [_argument(2), *_if_equal(0, [_Instruction(_RETURN, _ALLOW)])]),
        _refuse(errno.EAFNOSUPPORT),
    ]


def _pair(sockets: Sockets) -> list[_Instruction]:
    """Pairs of datagrams could be sent elsewhere, so they go with local sockets."""
    kinds = (_STREAM, _SEQUENCE, *((_DATAGRAM, _RAW) if sockets.local else ()))
    return [
        _argument(0),
        *_unless_equal(_AF_UNIX, [_refuse(errno.EAFNOSUPPORT)]),
        _argument(1),
        _Instruction(_AND, _SOCKET_TYPE),
        *(part for kind in kinds for part in _if_equal(kind, [_Instruction(_RETURN, _ALLOW)])),
        _refuse(errno.EACCES),
    ]


def _ioctl() -> list[_Instruction]:
    refused = [part for request in _TERMINAL for part in _if_equal(request, [_refuse(errno.EPERM)])]
    return [_argument(1), *refused, _Instruction(_RETURN, _ALLOW)]


def _prlimit() -> list[_Instruction]:
    """Limits of its own, not of others."""
    return [_argument(0), *_if_equal(0, [_Instruction(_RETURN, _ALLOW)]), _refuse(errno.EPERM)]


def _argument(index: int) -> _Instruction:
    """Loads the lower half of an argument: the calls in question take 32 bits."""
    return _Instruction(_LOAD, _ARGUMENTS + 8 * index)


def _refuse(number: int) -> _Instruction:
    return _Instruction(_RETURN, _ERRNO | number)


def _if_equal(value: int, then: list[_Instruction]) -> list[_Instruction]:
    return [_Instruction(_EQUAL, value, 0, len(then)), *then]


def _unless_equal(value: int, then: list[_Instruction]) -> list[_Instruction]:
    return [_Instruction(_EQUAL, value, len(then), 0), *then]


def _at_least(value: int, then: list[_Instruction]) -> list[_Instruction]:
    return [_Instruction(_AT_LEAST, value, 0, len(then)), *then]
