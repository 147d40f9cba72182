"""What a wildcard in a rule never covers: programs that run other programs, and options that run or delete.

Such a command is allowed by a rule that spells the dangerous part out. The table is short and errs on the side of
asking; it is no list of everything that is dangerous.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .words import names, opens_with_pattern, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a program that run something, write a file or delete."""

    words: frozenset[str] = frozenset()
    """Whole words, such as `-exec` or a sub-command."""
    letters: str = ""
    """Short options, also in a cluster (`-xc`)."""
    long: tuple[str, ...] = ()
    """Long options without their dashes; abbreviations count too."""
    shape: str = ""
    """A regular expression for what else an argument must not hold."""


def options(words: str = "", *, letters: str = "", long: str = "", shape: str = "") -> Options:
    """Options from texts with blanks between them."""
    return Options(words=names(words), letters=letters, long=tuple(long.split()), shape=shape)


EXACT = names(
    """ash at awk bash batch builtin busybox bwrap catchsegv chroot chrt chpst command compgen complete compopt coproc
    crontab csh daemonize dash dbus-run-session doas ed emacs enable entr env envdir eval ex exec expect fakeroot
    faketime fc firejail fish flatpak flock gawk gdb getopts hyperfine inotifywait ionice jobs ksh less let lldb ltrace
    m4 man mapfile mawk mksh more mosh nawk nice nohup npx nsenter numactl nvim osascript parallel perf pipx pkexec
    powershell proot proxychains pwsh readarray rlwrap rr rsh run-parts runcon runuser schedtool screen script
    sed setarch setpriv setsid setuidgid sg sh snap socat softlimit ssh start-stop-daemon stdbuf strace su sudo
    systemd-run taskset tcsh time timeout tmux torsocks trickle unbuffer unshare uvx valgrind vi view vim watch wsl
    xargs xdg-open xvfb-run zsh
    history . alias bind declare export hash local read readonly set shopt source trap typeset unset"""
)
"""Programs that only a rule without `*` allows: they run what their arguments say, or change what later words mean."""

RUNNERS = names(
    """ansible bundle bun cargo clojure cmake composer conda deno docker dotnet elixir erl gem ghci go gradle
    gradlew groovy guile hatch invoke ipython java julia just kubectl lein lua make meson mix mvn ninja nix node
    nox npm ocaml octave pdm perl php pip pipenv pnpm podman poetry pypy python racket rake rscript ruby
    runghc rye sbcl sbt scala swift task tclsh terraform tox uv yarn"""
)
"""Programs whose first argument chooses what runs: a rule must name it (`npm run lint *`, not `npm *`)."""

PRINTF_STORES = r"%[-+ #0-9.*']*[hlLjzqt]*n"
"""What makes `printf` set a variable, such as PATH."""
NOTHING = options()
_VERSION = re.compile(r"[\d.]+$")

DANGEROUS = {
    "find": options("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls"),
    "fd": options(letters="xX", long="exec exec-batch"),
    "git": options(
        "bisect clean config difftool filter-branch foreach mergetool",
        letters="cCDOfx",
        long="config-env exec exec-path ext-diff git-dir work-tree upload-pack receive-pack open-files-in-pager output"
        " force force-with-lease delete mirror prune hard textconv template separate-git-dir",
    ),
    "rsync": options(letters="e", long="rsh rsync-path del delete remove-source-files"),
    "tar": options(
        letters="IF",
        long="to-command checkpoint-action use-compress-program rmt-command rsh-command info-script"
        " new-volume-script remove-files",
    ),
    "sort": options(letters="o", long="output compress-program"),
    "rg": options(letters="z", long="pre hostname-bin search-zip"),
    "curl": options(letters="oOKT", long="output remote-name config upload-file"),
    "wget": options(letters="O", long="output-document execute use-askpass post-file"),
    "zip": options(letters="Tm", long="unzip-command move"),
    "tree": options(letters="o"),
    "date": options(letters="s", long="set"),
    "python": options(letters="cm"),
    "pypy": options(letters="cm"),
    "node": options(letters="epr", long="eval print require import"),
    "deno": options("eval", letters="A", long="allow-all allow-run"),
    "bun": options("x exec", letters="e", long="eval"),
    "perl": options(letters="eE"),
    "ruby": options(letters="e"),
    "php": options(letters="r", long="run"),
    "lua": options(letters="e"),
    "npm": options("exec x create init", long="script-shell"),
    "pnpm": options("exec dlx create", letters="c", long="shell-mode"),
    "yarn": options("exec dlx create"),
    "make": options(letters="f", long="file makefile eval"),
    "go": options("-exec -toolexec", long="exec toolexec"),
    "cargo": options(long="config"),
    "split": options(long="filter"),
    "csplit": options(letters="f", long="prefix"),
    "scp": options(letters="SoF"),
    "sftp": options(letters="SobF"),
    "ag": options(long="pager"),
    "ack": options(long="pager"),
    "bat": options(long="pager"),
    "diff": options(letters="l", long="paginate"),
    "file": options(letters="Cz", long="compile uncompress"),
    "printf": options(letters="v", shape=PRINTF_STORES),
    "test": options(letters="vR"),
    "wait": options(letters="p"),
    "cpio": options(long="rsh-command to-command"),
    "sqlite": options(long="cmd init"),
    "psql": options(letters="cfo", long="command file output"),
    "docker": options(letters="v", long="privileged volume mount"),
    "podman": options(letters="v", long="privileged volume mount"),
}
"""By the program's name without its folder and version."""


def program(word: str) -> str:
    """The name of a program without its folder, its version and its case."""
    name = word.rpartition("/")[2].casefold()
    return _VERSION.sub("", name) or name


def never_covered(words: Sequence[str], loose: Sequence[bool]) -> str | None:
    """Why a rule must not allow a command by its wildcards, or None.

    `loose` says of each word whether a wildcard had a part in matching it.
    """
    name = program(words[0])
    if name in EXACT:
        return f"`{name}` runs what its arguments say"
    named = any(not word.startswith("-") and not free for word, free in zip(words[1:], loose[1:], strict=True))
    if name in RUNNERS and not named:
        return f"the first argument of `{name}` chooses what runs"
    never = DANGEROUS.get(name, NOTHING)
    for place, (word, free) in enumerate(zip(words, loose, strict=True)):
        option = f"-{word}" if name == "tar" and place == 1 else word  # tar's first word is its letters
        if place and free and name in DANGEROUS and (opens_with_pattern(word) or is_dangerous(option, never)):
            return f"`{name} {written(word)}` may run, write or delete"
    return None


def is_dangerous(word: str, options: Options) -> bool:
    """Whether an argument is one of `options`."""
    if word in options.words or (options.shape and re.search(options.shape, word)):
        return True
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return bool(name) and any(option.startswith(name) or name.startswith(f"{option}-") for option in options.long)
    return word.startswith("-") and any(letter in word for letter in options.letters)
