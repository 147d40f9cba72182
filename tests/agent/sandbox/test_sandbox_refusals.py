"""What is read from the words of tools: real ones in a real sandbox, and texts of those that are not here."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from deepagent.agent.sandbox.bounds import Bounds, Grant, Refusal
from deepagent.agent.sandbox.engine import Engine
from deepagent.agent.sandbox.refusals import refusals
from deepagent.agent.sandbox.sandbox import Sandbox
from sandbox_world import World

_WRITES = {
    "touch": 'touch "$OUT/x"',
    "redirection": 'echo x > "$OUT/x"',
    "folder": 'mkdir "$OUT/new"',
    "copy": 'cp a.txt "$OUT/x"',
    "move": 'mv a.txt "$OUT/x"',
    "python": "\"$PYTHON\" -c \"import os; open(os.environ['OUT'] + '/x', 'w')\"",
    "node": "node -e \"require('fs').writeFileSync(process.env.OUT + '/x', '')\"",
    "git": 'git init "$OUT/new"',
    "tee": 'echo x | tee "$OUT/x"; exit ${PIPESTATUS[1]}',
    "tar": 'tar cf "$OUT/x.tar" a.txt',
    "relative": "touch ../outside/x",
}
_HOST = "somewhere.invalid"
_FETCHES = {
    "curl": f"curl -sS https://{_HOST}/",
    "wget": f"wget -t 1 http://{_HOST}/",
    "git": f"git clone https://{_HOST}/a.git",
    "ssh": f"git clone ssh://{_HOST}/a.git",
    "python": f'"$PYTHON" -c "import urllib.request; urllib.request.urlopen(\'http://{_HOST}\')"',
    "node": f"node -e \"fetch('http://{_HOST}')\"",
}


@pytest.mark.parametrize("tool", _WRITES)
def test_a_refused_write_names_path_and_folder(shared_world: World, engine: Engine, tool: str) -> None:
    if tool in {"node"} and not shutil.which(tool):
        pytest.skip(f"no {tool}")
    ran = shared_world.run(engine, _WRITES[tool])
    assert ran.returncode != 0
    found = refusals(ran.stdout.encode(), shared_world.bounds(), shared_world.root)
    assert [(refusal.kind, refusal.folder) for refusal in found] == [("write", shared_world.outside)], ran.stdout


@pytest.mark.parametrize("tool", _FETCHES)
def test_a_refused_connection_names_the_host(shared_world: World, engine: Engine, tool: str) -> None:
    if tool in {"curl", "wget", "ssh", "node"} and not shutil.which(tool):
        pytest.skip(f"no {tool}")
    ran = shared_world.run(engine, _FETCHES[tool])
    assert ran.returncode != 0
    found = refusals(ran.stdout.encode(), shared_world.bounds(), shared_world.root)
    hosts = [refusal.subject for refusal in found if refusal.kind == "network"]
    assert hosts == ["" if tool == "python" else _HOST], ran.stdout


def test_a_refused_read_is_named(shared_world: World, engine: Engine) -> None:
    ran = shared_world.run(engine, "cat ~/.ssh/id_key; cat ~/.netrc")
    found = refusals(ran.stdout.encode(), shared_world.bounds(), shared_world.root)
    home = shared_world.home
    assert found == tuple(Refusal(kind="read", subject=str(home / name)) for name in (".ssh/id_key", ".netrc"))


def test_a_closed_place_is_named_by_itself(shared_world: World, engine: Engine) -> None:
    if engine.name == "landlock":
        pytest.skip("Landlock closes nothing within a workspace")
    ran = shared_world.run(engine, "touch .git/hooks/x; git config a.b c")
    found = refusals(ran.stdout.encode(), shared_world.bounds(), shared_world.root)
    git = shared_world.root / ".git"
    assert [refusal.folder for refusal in found] == [git / "hooks", git / "config"], ran.stdout


@pytest.fixture
def closed(tmp_path: Path) -> Bounds:
    """Bounds within which only `work` may be written, and `secret` is hidden."""
    for name in ("work", "other", "secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret" / "key").touch()
    (tmp_path / "other" / "file").touch()
    return Bounds(writable=(tmp_path / "work",), hidden=(tmp_path / "secret",))


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("fatal: unable to access 'https://git.invalid/a/': Could not resolve host: git.invalid", "git.invalid"),
        ("ssh: Could not resolve hostname git.invalid: Temporary failure in name resolution", "git.invalid"),
        ("wget: unable to resolve host address ‘a.invalid’", "a.invalid"),
        ("Err:1 http://deb.invalid stable InRelease\n  Temporary failure resolving 'deb.invalid'", "deb.invalid"),
        ("npm error request to https://r.invalid/x failed, reason: getaddrinfo EAI_AGAIN r.invalid", "r.invalid"),
        ("Error: getaddrinfo ENOTFOUND api.invalid\n    at GetAddrInfoReqWrap", "api.invalid"),
        ('Get "https://proxy.invalid/x": dial tcp: lookup proxy.invalid on 10.0.0.2:53: dial udp', "proxy.invalid"),
        ("dial tcp: lookup go.invalid: Temporary failure in name resolution", "go.invalid"),
        ("Caused by:\n  [6] Could not resolve hostname (Could not resolve host: index.invalid)", "index.invalid"),
        (
            "WARNING: Retrying: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution",
            "",
        ),
        ("HTTPSConnectionPool(host='p.invalid', port=443): Max retries exceeded with url: /simple", "p.invalid"),
        ("curl: (7) Couldn't connect to server: Network is unreachable", ""),
        ("error sending request for url (https://u.invalid/simple/x/): dns error: failed", "u.invalid"),
    ],
)
def test_texts_about_the_network_are_read(closed: Bounds, tmp_path: Path, text: str, subject: str) -> None:
    assert refusals(text.encode(), closed, tmp_path / "work") == (Refusal(kind="network", subject=subject),)
    with_network = closed.within(Grant(network=True))
    assert refusals(text.encode(), with_network, tmp_path / "work") == ()


@pytest.mark.parametrize(
    "text",
    [
        "npm error EROFS: read-only file system, mkdir '{other}/x'",
        "Error: EACCES: permission denied, open '{other}/x'",
        'open("{other}/x"): Operation not permitted',
        "OSError: [Errno 30] Read-only file system: '{other}/x'",
        "error: failed to open: {other}/x\n\nCaused by:\n  Read-only file system (os error 30)",
        "mkdir: cannot create directory ‘../other/x’: Read-only file system",
        "bash: line 3: {other}/x: Permission denied",
        "go: writing {other}/x: read-only file system",
        "ld: cannot open output file {other}/x: Read-only file system",
    ],
)
def test_texts_about_files_are_read(closed: Bounds, tmp_path: Path, text: str) -> None:
    said = text.format(other=tmp_path / "other")
    (found,) = refusals(said.encode(), closed, tmp_path / "work")
    assert (found.kind, found.folder) == ("write", tmp_path / "other")


@pytest.mark.parametrize(
    "text",
    [
        "bash: ./run.sh: Permission denied",
        "cat: a.txt: Permission denied",
        "tests failed: Permission denied",
        "rm: cannot remove '{work}/x': Permission denied",
        "git@host: Permission denied (publickey).",
        "the file /no/such/folder/at/all exists",
        "connect ECONNREFUSED 127.0.0.1:1",
        "Connection refused",
        "FAILED test_network.py - assert 'resolve' in text",
        "E: Permission denied: {work}",
        "\x00\xff permission denied: '\x00'",
        "permission denied: '" + "x/" * 5000 + "'",
    ],
)
def test_other_failures_are_left_alone(closed: Bounds, tmp_path: Path, text: str) -> None:
    said = text.format(work=tmp_path / "work")
    assert refusals(said.encode(), closed, tmp_path / "work") == ()


def test_the_home_folder_is_not_offered_as_a_whole(closed: Bounds, tmp_path: Path, isolated: Path) -> None:
    (found,) = refusals(b"touch: cannot touch '~/x': Read-only file system", closed, tmp_path / "work")
    assert found == Refusal(kind="write", subject="~/x")
    (isolated / "more").mkdir()
    (found,) = refusals(b"touch: cannot touch '~/more/x': Read-only file system", closed, tmp_path / "work")
    assert found.folder == isolated / "more"


def test_what_the_user_could_not_write_anyway_is_no_refusal(closed: Bounds, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    assert refusals(b"touch: cannot touch '/etc/x': Permission denied", closed, tmp_path / "work") == ()


@pytest.fixture
def listener() -> Iterator[int]:
    """A port at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    "text",
    [
        "connect ECONNREFUSED 127.0.0.1:{port}",
        "curl: (7) Failed to connect to localhost port {port} after 0 ms: Couldn't connect to server",
        'connection to server at "localhost" (127.0.0.1), port {port} failed: Connection refused',
        "Looking in indexes: http://127.0.0.1:{port}/simple\nRetrying: [Errno 111] Connection refused",
    ],
)
def test_a_server_of_this_machine_counts_if_there_is_one(
    closed: Bounds, tmp_path: Path, listener: int, text: str
) -> None:
    found = refusals(text.format(port=listener).encode(), closed, tmp_path / "work")
    assert found == (Refusal(kind="network", subject=f"localhost:{listener}"),)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("permission denied while trying to connect to the docker API at unix:///var/run/docker.sock", ""),
        (
            'sudo: The "no new privileges" flag is set, which prevents sudo from running: operation not permitted',
            "sudo",
        ),
    ],
)
def test_other_doors_are_told_of(closed: Bounds, tmp_path: Path, text: str, subject: str) -> None:
    (found,) = refusals(text.encode(), closed, tmp_path / "work")
    assert found.kind == "other"
    assert found.subject.endswith(subject)


def test_much_of_the_same_is_told_once_and_little_of_it(closed: Bounds, tmp_path: Path) -> None:
    other = tmp_path / "other"
    lines = [f"touch: cannot touch '{other}/{i % 20}': Read-only file system" for i in range(20_000)]
    found = refusals("\n".join(lines).encode(), closed, tmp_path / "work")
    assert len(found) == len(set(found)) <= 8


def test_a_command_that_succeeded_was_refused_nothing(shared_world: World, engine: Engine) -> None:
    sandbox = Sandbox("auto", shared_world.bounds, environ={}, workspace=shared_world.root, engines=(engine,))
    said = b"curl: (6) Could not resolve host: a.invalid"
    assert sandbox.refusals(said, 0, Grant(), shared_world.root) == ()
    assert sandbox.refusals(said, 6, Grant(off=True), shared_world.root) == ()
    assert sandbox.refusals(said, 6, Grant(), shared_world.root) == (Refusal(kind="network", subject="a.invalid"),)
