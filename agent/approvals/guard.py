"""What a wildcard in a rule never covers: programs that run other programs, and options that run or delete.

Such a command is allowed by a rule that spells the dangerous part out. The table is short and errs on the side of
asking; it is no list of everything that is dangerous.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .shell import names, opens_with_pattern, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a program that run something, write a file or delete."""

    words: frozenset[str] = frozenset()
    """Whole words, such as `-exec` or a sub-command."""
    letters: str = ""
    """Short options, also in a cluster (`-xc`)."""
    long: tuple[str, ...] = ()
    """Long options without their dashes; abbreviations count too."""


def _options(words: str = "", letters: str = "", long: str = "") -> Options:
    return Options(words=names(words), letters=letters, long=tuple(long.split()))


EXACT = names(
    """awk bash builtin busybox bunx chroot command csh dash doas ed emacs env eval ex exec expect fish flock gawk gdb
    ionice ksh less ltrace m4 man mawk more nawk nice nohup npx nsenter nvim parallel pipx pkexec run-parts runuser
    screen script sed setsid sh socat ssh stdbuf strace su sudo systemd-run tcsh time timeout tmux unbuffer unshare
    uvx vi view vim watch xargs zsh
    . alias bind complete declare enable export hash local readonly set shopt source trap typeset unset"""
)
"""Programs that only a rule without `*` allows: they run what their arguments say, or change what later words mean."""

RUNNERS = names(
    """ansible bun bundle cargo cmake composer conda deno docker dotnet gem go gradle gradlew hatch invoke java julia
    just kubectl lua make mix mvn ninja nix node nox npm pdm perl php pip pipenv pnpm podman poetry pypy python rake
    rscript ruby rye sbt swift terraform tox uv yarn"""
)
"""Programs whose first argument chooses what runs: a rule must name it (`npm run lint *`, not `npm *`)."""

_VERSION = re.compile(r"[\d.]+$")

DANGEROUS = {
    "find": _options("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls"),
    "fd": _options(letters="xX", long="exec exec-batch"),
    "git": _options(
        "bisect clean config difftool filter-branch foreach mergetool",
        letters="cCDOfx",
        long="config-env exec exec-path ext-diff git-dir work-tree upload-pack receive-pack open-files-in-pager output"
        " force force-with-lease delete mirror prune hard textconv template separate-git-dir",
    ),
    "rsync": _options(letters="e", long="rsh rsync-path del delete remove-source-files"),
    "tar": _options(
        letters="IF",
        long="to-command checkpoint-action use-compress-program rmt-command rsh-command info-script"
        " new-volume-script remove-files",
    ),
    "sort": _options(letters="o", long="output compress-program"),
    "rg": _options(letters="z", long="pre hostname-bin search-zip"),
    "curl": _options(letters="oOKT", long="output remote-name config upload-file"),
    "wget": _options(letters="O", long="output-document execute use-askpass post-file"),
    "zip": _options(letters="Tm", long="unzip-command move"),
    "tree": _options(letters="o"),
    "date": _options(letters="s", long="set"),
    "python": _options(letters="cm"),
    "pypy": _options(letters="cm"),
    "node": _options(letters="epr", long="eval print require import"),
    "deno": _options("eval", letters="A", long="allow-all allow-run"),
    "bun": _options("x exec", letters="e", long="eval"),
    "perl": _options(letters="eE"),
    "ruby": _options(letters="e"),
    "php": _options(letters="r", long="run"),
    "lua": _options(letters="e"),
    "npm": _options("exec x create init", long="script-shell"),
    "pnpm": _options("exec dlx create", letters="c", long="shell-mode"),
    "yarn": _options("exec dlx create"),
    "make": _options(letters="f", long="file makefile eval"),
    "go": _options("-exec -toolexec", long="exec toolexec"),
    "cargo": _options(long="config"),
    "docker": _options(letters="v", long="privileged volume mount"),
    "podman": _options(letters="v", long="privileged volume mount"),
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
    options = DANGEROUS.get(name, _options())
    for place, (word, free) in enumerate(zip(words, loose, strict=True)):
        option = f"-{word}" if name == "tar" and place == 1 else word  # tar's first word is its letters
        if place and free and name in DANGEROUS and (opens_with_pattern(word) or _is_dangerous(option, options)):
            return f"`{name} {written(word)}` may run, write or delete"
    return None


def _is_dangerous(word: str, options: Options) -> bool:
    if word in options.words:
        return True
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return bool(name) and any(option.startswith(name) or name.startswith(f"{option}-") for option in options.long)
    return word.startswith("-") and any(letter in word for letter in options.letters)
