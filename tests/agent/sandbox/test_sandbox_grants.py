"""What a grant opens, and what stays closed with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deepagent.agent.sandbox.bounds import Bounds, Grant
from deepagent.agent.sandbox.engine import Engine, SandboxError
from deepagent.agent.sandbox.sandbox import Sandbox
from hard_inputs import hard_input
from sandbox_world import World


def run(world: World, engine: Engine, script: str, grant: Grant) -> int:
    """The exit code of a script with a grant, which `Sandbox` turns into bounds."""
    import subprocess

    sandbox = Sandbox("auto", world.bounds, environ=world.environ, workspace=world.root, engines=(engine,))
    wrapped = sandbox.wrap(("bash", "-c", f'py() {{ "$PYTHON" -I -S -c "$1"; }}; {script}'), world.root, grant)
    try:
        ran = subprocess.run(
            wrapped.argv,
            check=False,
            cwd=world.root,
            env=dict(world.environ),
            capture_output=True,
            pass_fds=wrapped.fds,
            timeout=20,
        )
    finally:
        wrapped.close()
    return ran.returncode


_WRITES = (
    "echo x > made",
    "echo x >> a.txt",
    "echo x > .git/x",
    "echo x > .deepagents/x",
    'echo x > "$BASE/tmp/x"',
    "echo x > /tmp/deepagent-x",
    'echo x > "$OUT/x"',
    "rm a.txt",
    "mkdir d",
    "ln -s a.txt l",
    "mv a.txt b.txt",
    "git commit --allow-empty -m x",
    "git add made",
    "touch .git/index.lock",
)


@hard_input("Sandbox", "a command that runs unasked because it only reads, and writes all the same", "writes nowhere")
@pytest.mark.parametrize("script", _WRITES)
def test_a_command_that_only_reads_writes_nowhere(shared_world: World, engine: Engine, script: str) -> None:
    shared_world.bounds()  # makes what has to be there to be closed
    before = _tree(shared_world.root)
    assert run(shared_world, engine, script, Grant(reading=True)) != 0
    assert _tree(shared_world.root) == before


@pytest.mark.parametrize(
    "script",
    [
        "cat a.txt",
        "git status --short",
        "git log -1 --oneline",
        "git diff HEAD",
        "ls -la",
        "grep -r first .git/logs | sort | uniq -c",
        'echo x > "$TMPDIR/x" && cat "$TMPDIR/x"',
        "cat <<E\nx\nE",
        "find . -name a.txt > /dev/null",
        "sort -S 1k /etc/services > /dev/null",
    ],
)
def test_a_command_that_only_reads_can_read(shared_world: World, engine: Engine, script: str) -> None:
    assert run(shared_world, engine, script, Grant(reading=True)) == 0


def test_a_command_that_only_reads_has_no_network(shared_world: World, engine: Engine) -> None:
    script = "exec 3<>/dev/tcp/127.0.0.1/$TCP"
    assert run(shared_world, engine, script, Grant(reading=True, network=True)) != 0


def test_network_can_be_granted_without_the_doors_to_other_programs(shared_world: World, engine: Engine) -> None:
    grant = Grant(network=True)
    assert run(shared_world, engine, "exec 3<>/dev/tcp/127.0.0.1/$TCP && printf tcp >&3", grant) == 0
    knock = "c = s.socket(s.AF_UNIX); c.connect"
    for address in ("e['DOOR']", "chr(0) + e['ABSTRACT']"):
        assert (
            run(shared_world, engine, f'py "import _socket as s, os; e = os.environ; {knock}({address})"', grant) != 0
        )
    pair = "s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b'pair', e['DATAGRAM'])"
    assert run(shared_world, engine, f'py "import _socket as s, os; e = os.environ; {pair}"', grant) != 0
    assert run(shared_world, engine, 'echo x > "$OUT/x"', grant) != 0
    assert run(shared_world, engine, "cat $HOME/.netrc", grant) != 0


def test_a_folder_can_be_granted_and_nothing_beside_it(shared_world: World, engine: Engine) -> None:
    folder = shared_world.outside / "granted"
    folder.mkdir(exist_ok=True)
    grant = Grant(writable=(folder,))
    assert run(shared_world, engine, 'echo x > "$OUT/granted/x"', grant) == 0
    assert run(shared_world, engine, 'echo x > "$OUT/x"', grant) != 0
    assert run(shared_world, engine, "exec 3<>/dev/tcp/127.0.0.1/$TCP", grant) != 0


def test_what_is_closed_can_be_granted_by_its_name_alone(shared_world: World, engine: Engine) -> None:
    hooks = shared_world.root / ".git" / "hooks"
    assert run(shared_world, engine, "echo x > .git/hooks/x && rm .git/hooks/x", Grant(writable=(hooks,))) == 0
    if engine.name == "bubblewrap":
        outer = Grant(writable=(shared_world.root, hooks.parent))
        assert run(shared_world, engine, "echo x > .git/hooks/x", outer) != 0


@pytest.mark.parametrize("folder", ["/", "home"])
def test_with_a_wide_grant_secrets_and_devices_stay_closed(shared_world: World, engine: Engine, folder: str) -> None:
    grant = Grant(writable=(shared_world.home if folder == "home" else Path(folder),))
    (shared_world.home / "free").mkdir(exist_ok=True)
    assert run(shared_world, engine, f"echo x > {'$OUT' if folder == '/' else '$HOME/free'}/x", grant) == 0
    closed = (
        "cat $HOME/.netrc",
        "echo x > $HOME/.netrc",
        "echo x > $HOME/.ssh/authorized_keys",
        "rm $HOME/.ssh/id_key",
        "cat $HOME/.deepagents/credentials.toml",
        "kill -URG $HOSTPID",
        "exec 3>> /proc/sys/kernel/core_pattern",
        "cat /proc/$HOSTPID/environ",
        "test -b /dev/$(ls /sys/block | head -1) && exec 3< /dev/$(ls /sys/block | head -1)",
    )
    for script in closed:
        assert run(shared_world, engine, script, grant) != 0, script
    if engine.name == "bubblewrap":
        for script in (
            "echo x >> $HOME/.bashrc",
            "echo x > $HOME/.deepagents/deepagent.toml",
            "mv $HOME/.deepagents x",
        ):
            assert run(shared_world, engine, script, grant) != 0, script


def test_a_command_can_be_let_off(shared_world: World, engine: Engine) -> None:
    assert run(shared_world, engine, 'echo x > "$OUT/off" && cat $HOME/.netrc', Grant(off=True)) == 0


def test_without_an_engine_it_depends_on_the_mode(tmp_path: Path) -> None:
    def sandbox(mode: str) -> Sandbox:
        assert mode in {"auto", "off", "strict"}
        return Sandbox(mode, lambda: Bounds(writable=()), environ={}, workspace=tmp_path, engines=())  # pyright: ignore[reportArgumentType]

    assert sandbox("auto").wrap(("ls",), tmp_path).argv == ("ls",)
    assert sandbox("off").wrap(("ls",), tmp_path).argv == ("ls",)
    with pytest.raises(SandboxError, match="cannot be confined"):
        sandbox("strict").wrap(("ls",), tmp_path)
    assert sandbox("strict").wrap(("ls",), tmp_path, Grant(off=True)).argv == ("ls",)
    for mode in ("auto", "off", "strict"):
        with pytest.raises(SandboxError):
            sandbox(mode).wrap(("ls",), tmp_path, Grant(reading=True))


def test_bounds_follow_the_inner_place() -> None:
    bounds = Bounds(
        writable=(Path("/w"), Path("/w/closed/open")), read_only=(Path("/w/closed"),), hidden=(Path("/w/secret"),)
    )
    assert bounds.may_write(Path("/w/x"))
    assert not bounds.may_write(Path("/w/closed/x"))
    assert bounds.may_write(Path("/w/closed/open/x"))
    assert not bounds.may_write(Path("/w/secret/x"))
    assert not bounds.may_write(Path("/other"))
    assert not bounds.may_write(Path("/wide"))
    assert bounds.within(Grant(reading=True, network=True)) == replace(bounds, writable=(), read_only=(), network=False)
    assert bounds.within(Grant(writable=(Path("/w/closed"),))).may_write(Path("/w/closed/x"))
    assert not bounds.within(Grant(writable=(Path("/w"),))).may_write(Path("/w/closed/x"))


def _tree(root: Path) -> dict[str, tuple[int, float]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in root.rglob("*")}
