"""Kinds of files by the names that ripgrep gives them, so that a search can be told `py` instead of a pattern.

The table is our own, so that a search finds the same with ripgrep and without. Patterns are of names, with `*` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from .protocol import BackendError


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """A kind and its patterns a line; a word without a `*` or a capital letter is the end of a name."""
    rows = (line.split() for line in text.strip().split("\n"))
    return {name: tuple(p if "*" in p or not p.islower() else f"*.{p}" for p in patterns) for name, *patterns in rows}


FILE_TYPES: Mapping[str, tuple[str, ...]] = _table("""
c c h
clojure clj cljc cljs edn
cmake cmake CMakeLists.txt
cpp cpp cc cxx c++ hpp hh hxx h++ h inl
cs cs
css css scss sass less
csv csv tsv
cuda cu cuh
dart dart
docker Dockerfile Dockerfile.* *.dockerfile Containerfile
elixir ex exs eex heex
elm elm
erlang erl hrl
fsharp fs fsx fsi
go go
gradle gradle *.gradle.kts
graphql graphql gql
groovy groovy
haskell hs lhs
html html htm xhtml ejs
java java jsp
javascript js jsx mjs cjs vue
js js jsx mjs cjs vue
json json jsonl geojson
julia jl
jupyter ipynb
kotlin kt kts
lisp el lisp scm rkt
log log
lua lua
make Makefile makefile* GNUmakefile *.mk
md md markdown mdx
nim nim
nix nix
objc m mm h
ocaml ml mli
perl pl pm t
php php phtml
protobuf proto
ps ps1 psm1 psd1
py py pyi
python py pyi
r r *.R *.Rmd
rb rb rake gemspec Gemfile Rakefile
rst rst
rs rs
ruby rb rake gemspec Gemfile Rakefile
rust rs
sass sass scss
scala scala sbt
sh sh bash zsh fish .bashrc* .zshrc* .profile*
sql sql
svelte svelte
swift swift
tex tex cls sty bib
tf tf tfvars
toml toml
ts ts tsx mts cts
txt txt
typescript ts tsx mts cts
vim vim
vue vue
xml xml xsd xsl xslt svg
yaml yaml yml
zig zig
""")


def patterns_of(kind: str) -> tuple[str, ...]:
    """The patterns of names that a kind of files has. Raises `BackendError` for an unknown one."""
    patterns = FILE_TYPES.get(kind.strip().removeprefix("*").removeprefix(".").lower())
    if patterns is None:
        near = get_close_matches(kind.lower(), FILE_TYPES, n=3, cutoff=0.5)
        meant = f"; near it are {', '.join(near)}" if near else ""
        raise BackendError(f"{kind!r} is no type of files that is known{meant}. A glob such as `*.py` names any")
    return patterns
