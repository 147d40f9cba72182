"""The sub-commands. Each loads what it needs when it is called; their names and help lines stand in `cli.words`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer, confirm

from ..agent.errors import ConfigError, DeepagentError
from ..agent.workspace import Workspace, find_workspace
from ..context.recall_passages import Role
from ..context.recall_query import QueryError
from ..context.storage import StorageError
from .terminal import plain
from .words import COMMANDS

_Json = Annotated[bool, Option("--json", help="Print JSON.")]
_Cwd = Annotated[Path, Option("-C", "--cwd", metavar="DIR", help="Look at this folder.")]
_HERE = Path()


def run_command(argv: Sequence[str]) -> int:
    """The exit code of a sub-command."""
    app = Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
    app.command("demo", help=_help("demo"))(_demo)
    app.command("doctor", help=_help("doctor"))(_doctor)
    app.command("config", help=_help("config"))(_config)
    sessions = Typer(invoke_without_command=True)
    sessions.callback()(_sessions)
    sessions.command("rm")(_sessions_rm)
    app.add_typer(sessions, name="sessions", help=_help("sessions"))
    app.command("memory", help=_help("memory"))(_memory)
    app.add_typer(
        _group({"list": _archive_list, "show": _archive_show, "search": _archive_search, "read": _archive_read}),
        name="archive",
        help=_help("archive"),
    )
    context = Typer(invoke_without_command=True)
    context.callback()(_context)
    context.command("check")(_context_check)
    app.add_typer(context, name="context", help=_help("context"))
    app.add_typer(
        _group({"list": _skills_list, "show": _skills_show, "check": _skills_check}),
        name="skills",
        help=_help("skills"),
    )
    app.add_typer(_group({"set": _auth_set, "list": _auth_list, "rm": _auth_rm}), name="auth", help=_help("auth"))
    try:
        app(args=list(argv), prog_name="deepagent")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BrokenPipeError:
        raise
    except (DeepagentError, StorageError, QueryError, OSError) as error:
        print(f"deepagent: {plain(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError | QueryError) else 1
    return 0


def _help(name: str) -> str:
    text = COMMANDS[name]
    return f"{text[0].upper()}{text[1:]}."


def _group(commands: dict[str, Callable[..., None]]) -> Typer:
    group = Typer(no_args_is_help=True)
    for name, command in commands.items():
        group.command(name)(command)
    return group


def _say(text: str) -> None:
    print(plain(text))


def _workspace(cwd: Path) -> Workspace:
    return find_workspace(cwd, environ=os.environ)


def _demo() -> None:
    from .demo import run_demo

    sys.exit(run_demo())


def _config(cwd: _Cwd = _HERE, json_: _Json = False) -> None:
    from ..agent.config import flatten
    from .settings import load_settings

    loaded = load_settings(_workspace(cwd), environ=os.environ, flags={})
    for notice in loaded.notices:
        print(f"deepagent: {notice}", file=sys.stderr)
    values = flatten(loaded.settings)
    origins = {key: ", ".join(f"{o.layer} {o.where}".strip() for o in loaded.origins[key]) for key in values}
    if json_:
        print(json.dumps({key: {"value": value, "origin": origins[key]} for key, value in values.items()}))
        return
    width = max(map(len, values))
    for key, value in values.items():
        _say(f"{key:<{width}}  {json.dumps(value):<24}  {origins[key]}")


def _doctor(cwd: _Cwd = _HERE, json_: _Json = False) -> None:
    """Exits with 1 if something keeps the agent from working."""
    from .doctor import checks, text_of

    found = checks(cwd, environ=os.environ)
    if json_:
        print(json.dumps([asdict(check) for check in found]))
    else:
        _say(text_of(found))
    if any(check.state == "bad" for check in found):
        sys.exit(1)


def _sessions(context: Context, cwd: _Cwd = _HERE, json_: _Json = False) -> None:
    """List the sessions of this workspace, newest first, or remove one."""
    if context.invoked_subcommand is not None:
        return
    from .listings import session_rows

    rows = session_rows(_workspace(cwd))
    if json_:
        print(json.dumps(rows))
        return
    for row in rows:
        counts = f"{row['messages']:>5} messages  {row['compactions']} compactions"
        _say(f"{row['id']}  {row['ended']:<12} {counts}  {row['title']}")
    if not rows:
        _say("There is no session in this workspace yet.")


def _sessions_rm(
    session: Annotated[str, Argument(help="The session's id, or its beginning.")],
    yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False,
    cwd: _Cwd = _HERE,
) -> None:
    """Remove a session for good: its log, its archive, and every text that went to a file."""
    from ..agent.checkpoints.retention import forget
    from ..agent.removal import files_of, remove_session
    from ..agent.sessions import pick_session

    workspace = _workspace(cwd)
    storage = workspace.storage()
    found = pick_session(storage, session)
    if not yes:
        if not sys.stdin.isatty():
            print("deepagent: nobody can be asked here; --yes removes it", file=sys.stderr)
            sys.exit(2)
        confirm(f"Remove {found} with {len(files_of(storage, found))} files for good?", abort=True)
    _say(f"removed {found}: {len(remove_session(storage, found))} files")
    forget(workspace.checkpoints, found)


def _memory(cwd: _Cwd = _HERE) -> None:
    from ..agent.prompt_source import find_memory
    from .settings import load_settings

    workspace = _workspace(cwd)
    memory = find_memory(workspace, load_settings(workspace, environ=os.environ, flags={}).settings.memory)
    for file in memory.files:
        _say(f"{file.path}  {file.bytes:,} bytes{', cut' if file.cut else ''}")
    for notice in memory.notices:
        _say(f"! {notice}")
    if not memory.files:
        _say("There is no AGENTS.md here.")


def _archive_list(cwd: _Cwd = _HERE, json_: _Json = False) -> None:
    """List what each compaction moved out of view."""
    from .listings import archive_rows

    rows = archive_rows(_workspace(cwd))
    if json_:
        print(json.dumps([asdict(row) for row in rows]))
        return
    for row in rows:
        _say(f"{row.session}  {row.compaction}  {row.time}  {row.messages:>5} messages  {row.size:>10,} bytes")
    if not rows:
        _say("Nothing was archived in this workspace yet.")


def _archive_show(
    session: Annotated[str, Argument(help="The session's id, or its beginning.")],
    compaction: Annotated[str | None, Argument(help="One compaction only.")] = None,
    cwd: _Cwd = _HERE,
) -> None:
    """Print an archive, or one compaction of it."""
    from .listings import archive_text

    _say(archive_text(_workspace(cwd), session, compaction))


def _archive_search(
    query: Annotated[str, Argument(help="Words, all of which must be there; phrases in quotes.")],
    *,
    literal: Annotated[bool, Option("--literal", help="The text exactly as it is written.")] = False,
    regex: Annotated[bool, Option("--regex", help="A regular expression.")] = False,
    session: Annotated[str | None, Option("--session", metavar="ID", help="In this session only.")] = None,
    role: Annotated[Role | None, Option("--role", metavar="ROLE", help="user, assistant, tool or harness.")] = None,
    tool: Annotated[str, Option("--tool", metavar="NAME", help="Calls and results of this tool.")] = "",
    file: Annotated[str, Option("--file", metavar="PATH", help="About this file; wildcards allowed.")] = "",
    after: Annotated[str, Option("--after", metavar="TIME", help="Not older: 2026-11-30, or with a time in UTC.")] = "",
    before: Annotated[str, Option("--before", metavar="TIME", help="Older than this.")] = "",
    limit: Annotated[int, Option("--limit", min=1, max=1_000, metavar="N", help="Hits to show.")] = 10,
    cwd: _Cwd = _HERE,
    json_: _Json = False,
) -> None:
    """Search everything that was ever said here: logs, archives, offloaded texts. Exit code 1 if nothing is found."""
    from ..context.recall_query import Query
    from .archive import json_of_search, search_archive, text_of_search

    mode = "regex" if regex else "literal" if literal else "words"
    asked = Query(text=query, mode=mode, role=role, tool=tool, file=file, after=after, before=before)
    searched = search_archive(_workspace(cwd), asked, session=session, limit=limit)
    if json_:
        print(json.dumps(json_of_search(searched)))
    else:
        _say(text_of_search(searched))
    sys.exit(0 if searched.found.hits else 1)


def _archive_read(
    id_: Annotated[str, Argument(metavar="ID", help="SESSION/MESSAGE, or with #PART, as a search gives it.")],
    lines: Annotated[str, Option("--lines", metavar="RANGE", help="40-80, or characters of a line: 7:2001-4000.")] = "",
    cwd: _Cwd = _HERE,
) -> None:
    """Print a message, or a part of it, as it was."""
    from .archive import read_archive, text_of_page

    _say(text_of_page(read_archive(_workspace(cwd), id_, lines)))


_Model = Annotated[str | None, Option("-m", "--model", metavar="NAME", help="The model that it is for.")]


def _context(
    context: Context,
    *,
    model: _Model = None,
    continue_: Annotated[bool, Option("-c", "--continue", help="Look at the newest session.")] = False,
    resume: Annotated[str | None, Option("-r", "--resume", metavar="ID", help="Look at this session.")] = None,
    cwd: _Cwd = _HERE,
    json_: _Json = False,
) -> None:
    """Show what the first request of a new session, or the next one of an earlier session, would hold."""
    if context.invoked_subcommand is not None:
        return
    from .context_report import as_json, lines_of, report_of
    from .options import NEWEST

    report = report_of(cwd, model=model, session=resume or (NEWEST if continue_ else None))
    if json_:
        print(json.dumps(as_json(report)))
        return
    for line in lines_of(report):
        _say(line)


def _context_check(
    max_idle: Annotated[int, Option("--max-idle", min=1, metavar="N", help="Tokens that a new session may take.")],
    model: _Model = None,
    cwd: _Cwd = _HERE,
) -> None:
    """For CI: the exit code is 1 if prompt, memory, skills and tools of a new session take more than N tokens."""
    from .context_report import idle_problem, report_of

    report = report_of(cwd, model=model, session=None)
    problem = idle_problem(report, max_idle)
    _say(problem or f"an idle session takes {report.account.used:,} of at most {max_idle:,} tokens")
    sys.exit(1 if problem else 0)


def _skills_list(cwd: _Cwd = _HERE) -> None:
    """List the skills that the model is told of."""
    from ..agent.prompt_source import find_skills

    skills = find_skills(_workspace(cwd))
    for skill in skills.skills:
        _say(f"{skill.name:<24} {skill.level:<8} {skill.description[:100]}")
    for problem in skills.problems:
        _say(f"! {problem}")
    for shadow in skills.shadowed:
        _say(f"! {shadow}")
    if not (skills.skills or skills.problems):
        _say("There are no skills; make one in .deepagents/skills/NAME/SKILL.md.")


def _skills_show(name: str, cwd: _Cwd = _HERE) -> None:
    """Print a skill's SKILL.md."""
    from ..agent.prompt_source import find_skills

    found = [skill for skill in find_skills(_workspace(cwd)).skills if skill.name == name]
    if not found:
        print(f"deepagent: there is no skill {name!r}; `deepagent skills list` shows them", file=sys.stderr)
        sys.exit(1)
    _say(found[0].path.read_text("utf-8", "replace"))


def _skills_check(cwd: _Cwd = _HERE) -> None:
    """Report broken skills; the exit code is 1 if there are any."""
    from ..agent.prompt_source import find_skills

    skills = find_skills(_workspace(cwd))
    for problem in skills.problems:
        _say(str(problem))
    _say(f"{len(skills.skills)} skills, {len(skills.problems)} problems")
    sys.exit(1 if skills.problems else 0)


_Provider = Annotated[str, Argument(help="The provider, such as openai, or its variable's name.")]


def _auth_set(
    provider: _Provider, no_test: Annotated[bool, Option("--no-test", help="Store it untested.")] = False
) -> None:
    """Ask for a key without echo, try it, and store it."""
    from .auth import set_key_asking

    sys.exit(asyncio.run(set_key_asking(provider, _workspace(_HERE), test=not no_test)))


def _auth_list() -> None:
    """List the stored keys by their last characters."""
    from ..agent.credentials import list_keys

    keys = list_keys(_workspace(_HERE).user)
    for key in keys:
        _say(f"{key.name:<28} …{key.hint}")
    if not keys:
        _say("No key is stored.")


def _auth_rm(provider: _Provider) -> None:
    """Forget a stored key."""
    from ..agent.credentials import remove_key

    if not remove_key(_workspace(_HERE).user, provider):
        print(f"deepagent: no key is stored for {provider}", file=sys.stderr)
        sys.exit(1)
