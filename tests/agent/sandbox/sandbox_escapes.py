"""Attempts to break out of a sandbox, as data: each is a script of bash that ends with 0 if it got out.

A script finds the world in variables (`sandbox_world`), a file and a folder of its own outside in `$FILE` and `$DIR`,
and `py` to run a piece of Python. Whatever an attempt changes for itself it puts back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

CLOSED = "what is closed within the workspace: git's hooks and settings, our own data"
NESTED = "settings of git repositories that a command makes in the workspace: git obeys them when run there by you"
MODES = "modes, owners and times of files outside"
NAMES = "names and sizes of hidden files"
PROCESSES = "which programs run, and their arguments"
PRIORITIES = "priorities of other programs"
SHARED = "shared memory and message queues of other programs"
LATE = "local sockets that other programs open while a command runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """One attempt."""

    name: str
    script: str
    lacks: Mapping[str, str] = field(default_factory=dict[str, str])
    """By engine: why it gets out there, in the words of `SandboxState.lacks`."""
    control: bool = True
    """It gets out when it is run unconfined, so that its failure means something. False where that would harm the
    machine, or needs more than the user may."""
    user: Literal["", "me", "nobody"] = ""
    """Only as this one."""


def _all(scripts: Mapping[str, str], **options: object) -> list[Escape]:
    return [Escape(name=name, script=script, **options) for name, script in scripts.items()]  # pyright: ignore[reportArgumentType]


_OPEN = "import os; o = os.open; d = os.environ['DIR']; f = os.environ['FILE'];"
WRITING = _all(
    {
        "write-absolute": "echo x > $DIR/new",
        "write-relative": "echo x > ../outside/$CASE.d/new",
        "append": "echo x >> $FILE",
        "overwrite": ": > $FILE",
        "truncate": "truncate -s 0 $FILE",
        "through-link-to-folder": "ln -sfn $DIR link; echo x > link/new",
        "through-link-to-file": "ln -sf $FILE link2; echo x >> link2",
        "through-link-chain": "ln -sfn $BASE up; ln -sfn up/outside/$CASE.d up2; echo x > up2/new",
        "through-hard-link": "ln $FILE hard && echo x >> hard",
        "move-in": "mv $FILE moved && ! test -e $FILE",
        "move-out": "echo x > t; mv t $DIR/",
        "link-out": "echo x > t2; ln t2 $DIR/t2",
        "delete": "rm -f $FILE",
        "make-folder": "mkdir $DIR/new",
        "remove-folder": "rmdir $DIR",
        "make-link": "ln -s /etc $DIR/new",
        "make-pipe": "mkfifo $DIR/new",
        "make-node": "mknod $DIR/new p",
        "rename-outside": "mv $DIR $DIR-2",
        "by-own-root": "echo x > /proc/self/root$DIR/new",
        "by-own-folder": "echo x > /proc/self/cwd/../outside/$CASE.d/new",
        "by-thread": "echo x > /proc/thread-self/root$DIR/new",
        "by-root-of-other": "echo x > /proc/$HOSTPID/root$DIR/new",
        "by-folder-of-other": "echo x > /proc/$HOSTPID/cwd/$CASE.d/new",
        "copy": "cp /etc/hostname $DIR/new",
        "edit-in-place": "sed -i s/untouched/x/ $FILE",
        "block-copy": "dd if=/dev/zero of=$FILE bs=1 count=1 2>&1",
        "install": "install -m 755 /bin/true $DIR/new",
        "unpack-absolute": "tar cPf a.tar --transform s,^.*,$DIR/new, a.txt; tar xPf a.tar; test -e $DIR/new",
        "git-outside": "git init -q $DIR/new",
        "folder-descriptor": f"py \"{_OPEN} os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(d, os.O_RDONLY))\"",
        "reopen": f"py \"{_OPEN} o('/proc/self/fd/%d' % o(f, os.O_RDONLY), os.O_RDWR | os.O_TRUNC)\"",
        "path-descriptor": f"py \"{_OPEN} o('/proc/self/fd/%d' % o(f, os.O_PATH), os.O_RDWR)\"",
        "nameless": f'py "{_OPEN} os.open(d, os.O_TMPFILE | os.O_RDWR)"',
        "start-up-file": "exec 3>> $HOME/.bashrc",
        "program-on-path": "exec 3> $HOME/.local/bin/ls",
        "settings-of-git": "exec 3>> $HOME/.gitconfig",
        "key-for-login": "exec 3> $HOME/.ssh/authorized_keys",
        "new-start-up-file": "exec 3> $HOME/.bash_profile",
    }
) + _all(
    {
        "mode": "chmod 777 $FILE",
        "time": "touch -d 2001-01-01 $FILE",
        "attribute": f"py \"{_OPEN} os.setxattr(f, 'user.x', b'1')\"",
    },
    lacks={"landlock": MODES},
)
SYSTEM = _all(
    {
        "give-away": "chown 1:1 $FILE",
        "users": "exec 3>> /etc/passwd",
        "programs": "exec 3> /usr/local/bin/deepagent-escape",
        "cron": "exec 3> /etc/cron.d/deepagent-escape",
        "spool": "exec 3> /var/spool/deepagent-escape",
        "at-boot": "exec 3> /etc/profile.d/deepagent-escape.sh",
        "kernel-settings": "exec 3>> /proc/sys/kernel/core_pattern",
        "kernel-keys": "exec 3> /proc/sysrq-trigger",
        "devices-by-sys": "exec 3>> /sys/kernel/mm/ksm/run || exec 3>> /sys/power/state",
        "control-group": "mkdir /sys/fs/cgroup/deepagent-escape || mkdir /sys/fs/cgroup/pids/deepagent-escape",
        "disk": "for d in $(ls /sys/block); do head -c 1 /dev/$d > got && test -s got && exit; done; exit 1",
        "memory": "exec 3< /dev/mem",
        "kernel-log": "test -c /dev/kmsg && exec 3> /dev/kmsg",
        "make-device": "mknod disk b 7 0 && exec 3< disk",
        "interrupts": "for f in /proc/irq/*/smp_affinity /proc/bus/pci/*/*; do exec 3>> $f && exit; done; exit 1",
    },
    control=False,
    user="me",
) + _all(
    {
        "bind": "unshare -Urm sh -c 'mount --bind $BASE/home tmp && echo x > $DIR/new'",
        "remount": "unshare -Urm sh -c 'mount -o remount,rw,bind / ; echo x > $DIR/new'",
        "plain-remount": "mount -o remount,rw / ; echo x > $DIR/new",
        "uncover": "unshare -Urm sh -c 'umount -l $HOME/.ssh; cat $HOME/.ssh/id_key' | grep -q $SECRET",
        "uncover-file": "unshare -Urm sh -c 'umount -l $HOME/.netrc; cat $HOME/.netrc' | grep -q $SECRET",
        "cover-again": "unshare -Urm sh -c 'mkdir -p m; mount --rbind $BASE m; echo x > m/outside/$CASE.d/new'",
        "overlay": (
            "unshare -Urm sh -c 'mkdir -p u w m2; mount -t overlay overlay -o lowerdir=$HOME,upperdir=u,workdir=w m2;"
            " cat m2/.ssh/id_key' | grep -q $SECRET"
        ),
        "change-root": "unshare -Ur chroot / sh -c 'echo x > $DIR/new'",
        "fresh-proc": "unshare -Urmpf sh -c 'mount -t proc proc /proc; echo x > /proc/1/root$DIR/new'",
        "join": "nsenter -t $HOSTPID -m -U sh -c 'echo x > $DIR/new'",
        "join-init": "nsenter -t 1 -a sh -c 'echo x > $DIR/new'",
    },
    control=False,
)
READING = [
    *_all(
        {
            "read": "grep -q $SECRET $HOME/.ssh/id_key",
            "read-file": "grep -q $SECRET $HOME/.netrc",
            "read-our-keys": "grep -q $SECRET $HOME/.deepagents/credentials.toml",
            "read-by-link": "ln -sf $HOME/.netrc l; grep -q $SECRET l",
            "read-by-folder-link": "ln -sfn $HOME lh; grep -q $SECRET lh/.ssh/id_key",
            "read-by-hard-link": "ln $HOME/.netrc h; grep -q $SECRET h",
            "read-by-own-root": "grep -q $SECRET /proc/self/root$HOME/.netrc",
            "read-by-root-of-other": "grep -q $SECRET /proc/$HOSTPID/root$HOME/.netrc",
            "read-by-copy": "cp -r $HOME/.ssh c; grep -rq $SECRET c",
            "read-by-move": "mv $HOME/.ssh ssh-2; grep -q $SECRET ssh-2/id_key && mv ssh-2 $HOME/.ssh",
            "read-by-search": "grep -rqs $SECRET $HOME",
            "read-by-archive": "tar c $HOME/.ssh $HOME/.netrc 2> /dev/null | grep -aq $SECRET",
            "read-by-git": "git diff --no-index /dev/null $HOME/.netrc | grep -q $SECRET",
            "read-by-descriptor": (
                "py \"import os; fd = os.open(os.environ['HOME'] + '/.netrc', os.O_PATH);"
                " os.environ['SECRET'].encode() in open('/proc/self/fd/%d' % fd, 'rb').read() or exit(1)\""
            ),
            "environment": "tr '\\0' '\\n' < /proc/$HOSTPID/environ | grep -q SECRET_TOKEN",
            "all-environments": "cat /proc/[0-9]*/environ 2> /dev/null | grep -aq SECRET_TOKEN",
            "descriptors-of-other": "readlink /proc/$HOSTPID/fd/0",
            "memory-of-other": "exec 3< /proc/$HOSTPID/mem",
            "map-of-other": "grep -q sleep /proc/$HOSTPID/maps",
        }
    ),
    Escape(name="list", script="ls $HOME/.ssh | grep -q id_key", lacks={"landlock": NAMES}),
    Escape(name="size", script="test $(stat -c %s $HOME/.netrc) = ${#SECRET}", lacks={"landlock": NAMES}),
    Escape(name="arguments", script="cat /proc/[0-9]*/cmdline | grep -aq 98765[4]", lacks={"landlock": PROCESSES}),
    Escape(name="shared-file", script="grep -q $SECRET $SHM", lacks={"landlock": SHARED}),
    Escape(name="shared-write", script="test -e $SHM && echo x >> $SHM", lacks={"landlock": SHARED}),
    Escape(name="shared-segment", script="ipcs -m -i $SEGMENT | grep -q bytes", lacks={"landlock": SHARED}),
    Escape(name="passwords", script="grep -q root /etc/shadow", user="me"),
    Escape(name="passwords-backup", script="grep -q : /etc/gshadow", user="me"),
    Escape(name="inherited", script="ls -l /proc/self/fd /proc/$$/fd | grep -q netrc", control=False),
    Escape(name="keyring", script='py "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(250, 0, -3, 1) < 0)"'),
    Escape(name="setuid", script='test "$($OUT/setuid-id -u)" = 0', user="nobody"),
]
_PTRACE = "import ctypes, os, sys; p = int(os.environ['HOSTPID']); c = ctypes.CDLL(None, use_errno=True);"
PROCESS = [
    *_all(
        {
            "stop": "kill -STOP $HOSTPID && kill -CONT $HOSTPID",
            "signal": "kill -URG $HOSTPID",
            "signal-by-name": "pkill -URG -f 'sleep 98765[4]'",
            "trace": f'py "{_PTRACE} sys.exit(c.ptrace(16, p, 0, 0) < 0)"',
            "read-memory": f'py "{_PTRACE} sys.exit(c.ptrace(0x4206, p, 0, 0) < 0)"',
            "handle": f'py "{_PTRACE} import _signal; _signal.pidfd_send_signal(os.pidfd_open(p), 23)"',
            "limits": "py \"import os, resource; resource.prlimit(int(os.environ['HOSTPID']), 7, (512, 512))\"",
        }
    ),
    Escape(name="priority", script="renice -n 5 -p $HOSTPID", lacks={"landlock": PRIORITIES}, user="nobody"),
]
_SOCKET = "import _socket as s, os; S = s.socket; e = os.environ; me = e['CASE'].encode();"
NETWORK = [
    *_all(
        {
            "tcp": "exec 3<>/dev/tcp/127.0.0.1/$TCP; printf $CASE >&3; exit 1",
            "tcp-by-name": "exec 3<>/dev/tcp/localhost/$TCP; printf $CASE >&3; exit 1",
            "tcp6": f"py \"{_SOCKET} c = S(s.AF_INET6); c.connect(('::1', int(e['TCP6']))); c.send(me)\"; exit 1",
            "udp": f"py \"{_SOCKET} S(s.AF_INET, s.SOCK_DGRAM).sendto(me, ('127.0.0.1', int(e['UDP'])))\"; exit 1",
            "door": f"py \"{_SOCKET} c = S(s.AF_UNIX); c.connect(e['DOOR']); c.send(me)\"; exit 1",
            "linked-door": f"py \"{_SOCKET} os.symlink(e['DOOR'], 'd'); c = S(1); c.connect('d'); c.send(me)\"; exit 1",
            "datagram": f"py \"{_SOCKET} S(s.AF_UNIX, s.SOCK_DGRAM).sendto(me, e['DATAGRAM'])\"; exit 1",
            "datagram-of-pair": f"py \"{_SOCKET} s.socketpair(1, s.SOCK_DGRAM)[0].sendto(me, e['DATAGRAM'])\"; exit 1",
            "abstract": f"py \"{_SOCKET} c = S(s.AF_UNIX); c.connect(chr(0) + e['ABSTRACT']); c.send(me)\"; exit 1",
            "own-network": "unshare -Urn true; exec 3<>/dev/tcp/127.0.0.1/$TCP; printf $CASE >&3; exit 1",
            "abstract-in-other-form": "exec 3<>/dev/udp/127.0.0.1/$UDP; printf $CASE >&3; exit 1",
        }
    ),
    Escape(
        name="network-of-other",
        script="nsenter -t $HOSTPID -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/$TCP; printf $CASE >&3'; exit 1",
        user="me",
    ),
    Escape(name="raw", script=f'py "{_SOCKET} s.socket(s.AF_INET, s.SOCK_RAW, 1)"', user="me"),
    Escape(name="packet", script=f'py "{_SOCKET} s.socket(s.AF_PACKET, s.SOCK_RAW, 3)"', user="me"),
    Escape(name="to-the-host", script=f'py "{_SOCKET} s.socket(40, s.SOCK_STREAM)"', control=False),
    Escape(name="ciphers", script=f'py "{_SOCKET} s.socket(38, s.SOCK_SEQPACKET)"', control=False),
    Escape(name="ring", script='py "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(425, 1, bytes(120)) < 0)"'),
    Escape(
        name="late-door",
        script=(
            "touch wants-late; for i in $(seq 100); do test -e $LATE && break; sleep 0.01; done;"
            f" py \"{_SOCKET} c = S(s.AF_UNIX); c.connect(e['LATE']); c.send(me)\"; exit 1"
        ),
        lacks={"bubblewrap": LATE},
    ),
    Escape(name="terminal", script="exec 3> $TERMINAL"),
    Escape(name="terminal-reading", script="exec 3< $TERMINAL"),
    Escape(
        name="typing",
        script="py \"import fcntl, os; fcntl.ioctl(os.open(os.environ['TERMINAL'], 258), 0x5412, b'x')\"",
        control=False,
    ),
]
DATA = _all(
    {
        "log-append": "echo x >> .deepagents/sessions/s.jsonl",
        "log-cut": "truncate -s 0 .deepagents/sessions/s.jsonl",
        "log-delete": "rm -f .deepagents/sessions/s.jsonl && echo entry > .deepagents/sessions/s.jsonl",
        "log-rename": "mv .deepagents/sessions/s.jsonl .deepagents/t && mv .deepagents/t .deepagents/sessions/s.jsonl",
        "log-mode": "chmod 777 .deepagents/sessions/s.jsonl",
        "log-link": "ln .deepagents/sessions/s.jsonl ours && echo x >> ours",
        "archive-new": "echo x > .deepagents/conversation_history/x.md",
        "settings": "echo x >> .deepagents/deepagent.toml",
        "settings-new": "echo x > .deepagents/deepagent.local.toml",
        "settings-by-move": "echo x > n.toml; mv n.toml .deepagents/deepagent.toml",
        "data-aside": "mv .deepagents .d && mv .d .deepagents",
        "git-hook": "echo x > .git/hooks/pre-commit",
        "git-hook-by-move": "echo x > hook; mv hook .git/hooks/post-commit",
        "git-hooks-aside": "mv .git/hooks .git/h && mv .git/h .git/hooks",
        "git-hooks-removed": "mkdir .git/hooks/z && rm -rf .git/hooks/z",
        "git-aside": "mv .git .g && mv .g .git",
        "git-program": "git config core.fsmonitor x && git config --unset core.fsmonitor",
        "git-program-by-file": "git config -f .git/config core.pager x && git config --unset core.pager",
        "git-worktree-program": "git config --worktree core.pager x && git config --worktree --unset core.pager",
        "git-attributes": "echo '* filter=x' >> .git/info/attributes && rm .git/info/attributes",
        "git-info-aside": "mv .git/info .git/i && mv .git/i .git/info",
        "submodule-hook": "echo x > .git/modules/sub/hooks/pre-commit",
        "submodule-program": "git -C sub config core.fsmonitor x && git -C sub config --unset core.fsmonitor",
        "submodule-elsewhere": "cp sub/.git keep; echo 'gitdir: ../evil' > sub/.git && cp keep sub/.git",
        "submodule-aside": "mv sub s2 && mv s2 sub",
        "submodules-aside": "mv .git/modules .git/m && mv .git/m .git/modules",
        "other-worktree": ("cd .git/worktrees/linked; echo x >> commondir; rc=$?; echo ../.. > commondir; exit $rc"),
    },
    lacks={"landlock": CLOSED},
) + _all(
    {
        "git-by-common-folder": (
            "cp -r .git evil; git config -f evil/config core.fsmonitor 'touch seen; false';"
            " echo $PWD/evil > .git/commondir;"
            " env -C $ROOT git status > /dev/null; rm .git/commondir; test -e seen && rm seen"
        ),
        "git-by-nested-repository": (
            "git init -q nest; git -C nest commit -q --allow-empty -m x; git add nest 2> /dev/null;"
            " git -C nest config core.fsmonitor 'touch ../seen2; false'; git status > /dev/null;"
            " git rm -q --cached nest; rm -rf nest; test -e seen2 && rm seen2"
        ),
    },
    lacks={"landlock": NESTED, "bubblewrap": NESTED},
)
LEFT_BEHIND = _all(
    {
        "later": "(sleep 0.2; echo x > $DIR/new) > /dev/null 2>&1 &",
        "later-in-session": "setsid sh -c 'sleep 0.2; echo x > $DIR/new' > /dev/null 2>&1 &",
        "later-reading": "(sleep 0.2; grep -q $SECRET $HOME/.netrc && touch $ROOT/got-$CASE) > /dev/null 2>&1 &",
        "later-network": "(sleep 0.2; exec 3<>/dev/tcp/127.0.0.1/$TCP; printf $CASE >&3) > /dev/null 2>&1 &",
    }
)
"""These end at once with 0; that they got out is seen by what they left."""

ESCAPES = (*WRITING, *SYSTEM, *READING, *PROCESS, *NETWORK, *DATA)
