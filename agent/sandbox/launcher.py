"""Runs a command under Landlock. A program of its own, started by `landlock` for each command.

It uses nothing but the standard library, and little of that, because each command waits for it:

    python -I -S -c "…launcher.start()" [--write PATH]… [--hide PATH]… [--filter HEX] [--network] [--private]
                             [--unset NAME]… [--set NAME=VALUE]… -- COMMAND…

Three processes: the outer one ends as the command ends, at once and in the same way; the middle one stays until the
last of the command's descendants has ended, so that they can be found below it; the inner one becomes the command.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module would cost milliseconds
    from collections.abc import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Landlock's system calls, the same on every machine."""
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE, _MAKE_DEVICE = 1 << 4 | 1 << 5, 1 << 6 | 1 << 11
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
"""Folders, files, sockets, pipes, links."""
_REFER, _TRUNCATE, _DEVICE = 1 << 13, 1 << 14, 1 << 15
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
"""Abstract sockets and signals."""
_READ = _EXECUTE | _READ_FILE
_WRITE = _WRITE_FILE | _TRUNCATE | _REMOVE | _MAKE | _REFER
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - semaphores are made there
_NO_NEW_PRIVILEGES, _SUBREAPER, _SECCOMP, _DROP, _AMBIENT = 38, 36, 22, 24, 47
_CAPSET = {"x86_64": 126}.get(os.uname().machine, 91)
_CAPABILITIES_3 = 0x20080522
_FAILED = 126
_IGNORED = (1, 2, 3, 15)
"""SIGHUP, SIGINT, SIGQUIT, SIGTERM by their numbers: the module `signal` costs milliseconds."""
_RESTORED = (*_IGNORED, 13, 25)
"""Also SIGPIPE and SIGXFSZ, which Python ignores."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class Options:
    """What the arguments say."""

    def __init__(self, arguments: list[str]) -> None:
        """Takes what stands before `--`, and the command behind it."""
        end = arguments.index("--")
        self.command = arguments[end + 1 :]
        self.write: list[str] = []
        self.hide: list[str] = []
        self.unset: list[str] = []
        self.set: list[str] = []
        self.filter = b""
        self.network = self.private = False
        rest = iter(arguments[:end])
        for option in rest:
            if option == "--filter":
                self.filter = bytes.fromhex(next(rest))
            elif option in {"--network", "--private"}:
                setattr(self, option[2:], True)
            else:
                getattr(self, option[2:]).append(next(rest))


def version() -> int:
    """The version of Landlock that the kernel has; 0 where it has none."""
    return max(0, int(_libc.syscall(_CREATE, None, 0, 1)))


def main(arguments: list[str]) -> int:
    """The outer process. Returns the command's exit code, or ends by the same signal."""
    options = Options(arguments)
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.close(reader)
        _stay(options, writer)
    os.close(writer)
    said = os.read(reader, 16)
    status = int(said) if said else os.waitpid(middle, 0)[1]
    if os.WIFSIGNALED(status):
        _libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: the command has left its core, this one is of no interest
        _handle(os.WTERMSIG(status), ignore=False)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def _stay(options: Options, writer: int) -> None:
    """The middle process: adopts what the command leaves behind, and ends last."""
    _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    for number in _IGNORED:
        _handle(number, ignore=True)
    folder = _private_folder() if options.private else None
    inner = os.fork()
    if inner == 0:
        os.close(writer)
        _become(options, folder)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == inner:
            if folder is not None:
                _remove(folder)
            os.write(writer, str(status).encode())
            os.close(writer)
    os._exit(0)


def _private_folder() -> str:
    base = os.environ.get("TMPDIR", "")
    if not os.path.isdir(base):  # noqa: PTH112
        base = "/tmp"  # noqa: S108 - the name cannot be foreseen, and the folder must be new
    folder = f"{base}/deepagent-{os.urandom(8).hex()}"
    os.mkdir(folder, 0o700)  # noqa: PTH102 - pathlib costs milliseconds
    return folder


def _remove(folder: str) -> None:
    """Removes the private folder; most often nothing is in it."""
    try:
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _become(options: Options, folder: str | None) -> None:
    """The inner process: gives up what it must not have, and becomes the command."""
    try:
        for number in _RESTORED:
            _handle(number, ignore=False)
        for name in options.unset:
            os.environ.pop(name, None)
        for name, _, value in (pair.partition("=") for pair in options.set):
            os.environ[name] = value
        if folder is not None:
            os.environ["TMPDIR"] = folder
            options.write.append(folder)
        _give_up_capabilities()
        _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _restrict(options)
        if options.filter:
            _install(options.filter)
        os.execvp(options.command[0], options.command)  # noqa: S606 - that is what it is for
    except BaseException as error:  # noqa: BLE001 - whatever it is, the command must not run
        os.write(2, f"the sandbox could not be set up: {error}\n".encode())
    os._exit(_FAILED)


def _handle(number: int, *, ignore: bool) -> None:
    """Ignores a signal, or lets it do what it does to every program."""
    _libc.signal(number, ctypes.c_void_p(int(ignore)))


def _give_up_capabilities() -> None:
    for capability in range(64):
        if _libc.prctl(_DROP, capability, 0, 0, 0):
            break
    _libc.prctl(_AMBIENT, 4, 0, 0, 0)
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    _check(_libc.syscall(_CAPSET, ctypes.byref(head), ctypes.byref((ctypes.c_uint32 * 6)())))


def _install(code: bytes) -> None:
    held = ctypes.create_string_buffer(code, len(code))
    program = _Filter(len(code) // 8, ctypes.cast(held, ctypes.c_void_p))
    _check(_libc.prctl(_SECCOMP, 2, ctypes.byref(program), 0, 0))


def _restrict(options: Options) -> None:
    newest = version()
    handled = _READ | _READ_DIR | _WRITE | _MAKE_DEVICE | _DEVICE
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE)):
        handled &= ~right if newest < since else -1
    rules = _Ruleset(handled, 0 if options.network or newest < 4 else _TCP, 0 if newest < 6 else _SCOPES)
    size = 8 if newest < 4 else 16 if newest < 6 else 24
    ruleset = _check(_libc.syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0))

    def grant(path: str, rights: int) -> None:
        _grant(ruleset, path, rights & handled)

    grant("/", _READ_DIR)
    _spread(grant, "/", _READ, {"/dev", *options.hide})
    for name in _DEVICES:
        grant(f"/dev/{name}", _READ_FILE | _WRITE_FILE | _TRUNCATE | _DEVICE)
    if not options.private:
        grant(_SHARED_MEMORY, _READ_FILE | _WRITE)
    for path in options.write:
        _spread(grant, path, _WRITE, {"/dev", "/proc", "/sys", *options.hide})
    _check(_libc.syscall(_RESTRICT, ruleset, 0))


def _spread(grant: Callable[[str, int], None], top: str, rights: int, closed: set[str]) -> None:
    """Grants rights to all from a folder on that is not closed.

    Of the folders on the way to a closed place each entry gets them, but that one and the folder itself.
    """
    above: set[str] = set()
    for path in closed:
        parts = path.split("/")
        above.update("/".join(parts[:end]) or "/" for end in range(1, len(parts)))
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        if folder in closed:
            continue
        if folder not in above:
            grant(folder, rights)
            continue
        try:
            waiting.extend(entry.path for entry in os.scandir(folder) if not entry.is_symlink())
        except OSError:
            continue


def _grant(ruleset: int, path: str, rights: int) -> None:
    """Adds a rule; a place that is gone needs none."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if not _libc.syscall(_ADD, ruleset, 1, ctypes.byref(_Beneath(rights, fd)), 0):
            return
        rule = _Beneath(rights & _OF_FILES, fd)  # it is no folder
        if rule.rights:
            _libc.syscall(_ADD, ruleset, 1, ctypes.byref(rule), 0)
    finally:
        os.close(fd)


def _check(result: int) -> int:
    """Raises `OSError` for what failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def start() -> None:
    """Does what the program's arguments say, and ends."""
    os._exit(main(sys.argv[1:]))
