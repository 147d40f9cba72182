"""Ordinary work that has to succeed in a sandbox, in each engine: commits, builds, installations, odd names."""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from deepagent.agent.sandbox.bounds import Bounds
from deepagent.agent.sandbox.engine import Engine
from deepagent.agent.sandbox.refusals import refusals
from hard_inputs import hard_input
from sandbox_world import World

_NAME = "localwheel-1.0-py3-none-any.whl"


def done(world: World, engine: Engine, script: str, *, bounds: Bounds | None = None, cwd: Path | None = None) -> str:
    """What a script says, which must succeed."""
    ran = world.run(engine, f"set -e; {script}", bounds=bounds, cwd=cwd)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.mark.parametrize(
    "script",
    [
        "git checkout -q -B work; date +%N > made; git add made; git commit -q -m change; git log --oneline | head -1",
        "git checkout -q -B a; git commit -q --allow-empty -m a; git rebase -q HEAD~1; git tag t; git tag -d t",
        "echo stash > a.txt; git stash -q; git stash pop -q; git checkout -q a.txt; git gc -q; git status --short",
        "mkdir -p new; git -C new init -q; cd new; echo b > b; git add b; git commit -q -m b; cd ..; rm -rf new",
        "cd sub; date +%N > more; git add more; git commit -q -m more; git status --short",
        "git worktree add -q --detach inner; git -C inner commit -q --allow-empty -m i; git worktree remove -f inner",
        "git clone -q . clone; git -C clone log -1; rm -rf clone",
    ],
    ids=["commit", "history", "stash", "new-repository", "submodule", "new-worktree", "clone"],
)
def test_git_works(shared_world: World, engine: Engine, script: str) -> None:
    done(shared_world, engine, script)


@hard_input(
    "Sandbox", "`git commit` in a linked worktree", "works; the main repository's hooks, settings and files stay closed"
)
def test_a_commit_works_in_a_linked_worktree(shared_world: World, engine: Engine) -> None:
    linked = shared_world.base / "linked"
    bounds = shared_world.bounds(linked)
    done(shared_world, engine, "date +%N >> a.txt; git commit -q -a -m linked; git log -1", bounds=bounds, cwd=linked)
    closed = (
        "echo x > ../work/.git/hooks/x",
        "git config a.b c",
        "echo x > ../work/a.txt",
        "echo x > ../work/.git/HEAD",
    )
    for script in closed:
        assert shared_world.run(engine, script, bounds=bounds, cwd=linked).returncode != 0, script


def test_a_commit_works_where_the_workspace_is_a_submodule(shared_world: World, engine: Engine) -> None:
    sub = shared_world.root / "sub"
    bounds = shared_world.bounds(sub)
    done(shared_world, engine, "date +%N >> s; git commit -q -a -m inner", bounds=bounds, cwd=sub)
    assert shared_world.run(engine, "echo x > ../a.txt", bounds=bounds, cwd=sub).returncode != 0


@pytest.mark.skipif(not shutil.which("cc") or not shutil.which("make"), reason="no compiler")
def test_compiling_works(shared_world: World, engine: Engine) -> None:
    script = r"""mkdir -p build; cd build
        printf '#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n' > m.c
        printf 'm: m.c\n\tcc -o m m.c\n' > Makefile; make -s; ./m"""
    assert done(shared_world, engine, script) == "made\n"


def test_temporary_files_last_from_command_to_command(shared_world: World, engine: Engine) -> None:
    done(shared_world, engine, 'echo kept > "$TMPDIR/last"; cat <<E > $TMPDIR/here\nx\nE')
    assert done(shared_world, engine, 'cat "$TMPDIR/last"') == "kept\n"
    assert (shared_world.base / "tmp" / "last").read_text() == "kept\n"


@pytest.mark.parametrize("name", ["with space", "line\nbreak", "-dash", "ünïcödé", "'\"$(id)", "long" * 50])
def test_odd_names_work(shared_world: World, engine: Engine, name: str) -> None:
    place = shared_world.base / "odd" / engine.name / name
    folder, hidden = place / name, place / f"hidden-{name}"[:250]
    (folder / "closed").mkdir(parents=True)
    hidden.write_text("secret")
    bounds = Bounds(writable=(folder,), read_only=(folder / "closed",), hidden=(hidden,))
    done(shared_world, engine, "echo x > made; cat made", bounds=bounds, cwd=folder)
    assert shared_world.run(engine, "echo x > ../outside", bounds=bounds, cwd=folder).returncode != 0
    assert "secret" not in shared_world.run(engine, "cat ../hidden*", bounds=bounds, cwd=folder).stdout


def test_beside_a_hidden_file_landlock_lets_nothing_new_be_made(shared_world: World, engine: Engine) -> None:
    folder = shared_world.base / "beside" / engine.name
    folder.mkdir(parents=True)
    (folder / "hidden").write_text("secret")
    (folder / "there").write_text("old")
    bounds = Bounds(writable=(folder,), hidden=(folder / "hidden",))
    script = "cat hidden; echo new > there; cat there; touch made"
    ran = shared_world.run(engine, script, bounds=bounds, cwd=folder)
    assert "secret" not in ran.stdout
    assert "new\n" in ran.stdout
    assert (ran.returncode == 0) == (engine.name == "bubblewrap")


def test_a_deep_path_works(shared_world: World, engine: Engine) -> None:
    folder = shared_world.root / "/".join(["deep" * 20] * 20)
    folder.mkdir(parents=True, exist_ok=True)
    done(shared_world, engine, "echo x > made; cat made", cwd=folder)


def test_python_has_its_locks_pools_and_pairs(shared_world: World, engine: Engine) -> None:
    program = (
        "import multiprocessing, socket, threading, asyncio;"
        "pool = multiprocessing.get_context('fork').Pool(2); assert pool.map(abs, [-1, -2]) == [1, 2];"
        "pool.terminate(); a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x';"
        "asyncio.run(asyncio.sleep(0)); print('fine')"
    )
    assert done(shared_world, engine, f'"$PYTHON" -c "{program}"').endswith("fine\n")


def test_servers_of_its_own_can_be_reached_with_bubblewrap(shared_world: World, engine: Engine) -> None:
    program = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname());"
        "u = socket.socket(socket.AF_UNIX); u.bind('own.sock'); u.listen();"
        "v = socket.socket(socket.AF_UNIX); v.connect('own.sock')"
    )
    ran = shared_world.run(engine, f'"$PYTHON" -c "{program}"; code=$?; rm -f own.sock; exit $code')
    assert (ran.returncode == 0) == (engine.name == "bubblewrap"), ran.stdout


@functools.cache
def _wheel() -> bytes:
    """A package of one module."""
    import io

    info = "localwheel-1.0.dist-info"
    files = {
        "localwheel.py": "SAYS = 'installed'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: localwheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


class _Index(http.server.BaseHTTPRequestHandler):
    """A package index with one package."""

    def do_GET(self) -> None:
        wheel = self.path.endswith(".whl")
        body = _wheel() if wheel else f'<a href="/{_NAME}">{_NAME}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if wheel else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def _index() -> Generator[int]:
    """Serves the index; yields its port."""
    server = http.server.HTTPServer(("127.0.0.1", 0), _Index)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _install(what: str) -> str:
    pip = f"{sys.executable} -m pip --disable-pip-version-check --python venv/bin/python install --no-deps"
    use = "venv/bin/python -c 'import localwheel as l; print(l.SAYS)'"
    return f"{sys.executable} -m venv --without-pip venv; {pip} {what}; {use}"


def test_pip_installs_a_local_wheel_without_network(shared_world: World, engine: Engine) -> None:
    (shared_world.root / _NAME).write_bytes(_wheel())
    assert done(shared_world, engine, f"rm -rf venv; {_install(f'./{_NAME}')}").endswith("installed\n")


@hard_input("Sandbox", "`pip install` from an index", "is refused for want of network, named, and works with it")
def test_pip_from_an_index_is_told_as_a_want_of_network_and_works_with_it(shared_world: World, engine: Engine) -> None:
    bounds = shared_world.bounds()
    with _index() as port:
        script = f"set -e; rm -rf venv; {_install(f'--no-cache-dir -i http://127.0.0.1:{port}/simple localwheel')}"
        refused = shared_world.run(engine, script, bounds=bounds)
        assert refused.returncode != 0
        kinds = {refusal.kind for refusal in refusals(refused.stdout.encode(), bounds, shared_world.root)}
        assert kinds == {"network"}, refused.stdout
        allowed = done(shared_world, engine, script, bounds=replace(bounds, network=True))
    assert allowed.endswith("installed\n")


@pytest.mark.skipif(not shutil.which("npm"), reason="no npm")
def test_npm_installs_a_local_package_without_network(shared_world: World, engine: Engine) -> None:
    script = """mkdir -p npm/lib; cd npm; echo '{"name":"top","version":"1.0.0"}' > package.json
        echo '{"name":"lib","version":"1.0.0"}' > lib/package.json; echo 'module.exports = 7' > lib/index.js
        npm install --no-audit --no-fund ./lib > /dev/null; node -p 'require("lib")'"""
    assert done(shared_world, engine, script) == "7\n"


@hard_input(
    "Sandbox", "`npm install` from a registry", "fails at once and names the host; a package of the project installs"
)
@pytest.mark.skipif(not shutil.which("npm"), reason="no npm")
def test_npm_from_a_registry_is_told_as_a_want_of_network_at_once(shared_world: World, engine: Engine) -> None:
    bounds = shared_world.bounds()
    script = "mkdir -p npm2; cd npm2; echo {} > package.json; npm install --registry http://registry.invalid left-pad"
    ran = shared_world.run(engine, script, bounds=bounds)
    assert ran.returncode != 0
    found = refusals(ran.stdout.encode(), bounds, shared_world.root)
    assert [refusal.kind for refusal in found] == ["network"], ran.stdout
    assert found[0].subject == "registry.invalid"


@pytest.mark.long
def test_a_whole_environment_and_its_tests_work(shared_world: World, engine: Engine) -> None:
    script = f"""rm -rf whole; "$PYTHON" -m venv whole; whole/bin/python -m pip --version
        mkdir -p t; echo 'def test_a(tmp_path): (tmp_path / "x").write_text("y")' > t/test_a.py
        {sys.executable} -m pytest -q -p no:cacheprovider t"""
    assert "1 passed" in done(shared_world, engine, script)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo x > /dev/stdout", "x"),
        ("echo x | tee /dev/stderr > /dev/null", "x"),
        ("diff <(echo a) <(echo a) && echo same", "same"),
        ("echo x | tee >(cat) > /dev/null; sleep 0.1", "x"),
        ("head -c 4 /dev/zero | wc -c", "4"),
        ("head -c 4 /dev/urandom | wc -c", "4"),
        ("(exit 3); echo $?", "3"),
        ("ulimit -n 64; ulimit -n", "64"),
        ("mkfifo p; (echo x > p &); cat p; rm p", "x"),
        ("cat /proc/self/comm", "cat"),
        ('test -n "$(getconf _NPROCESSORS_ONLN)" && nproc > /dev/null && echo some', "some"),
        ("id -un > /dev/null && whoami > /dev/null && echo known", "known"),
        ("timeout 0.1 sleep 5; echo $?", "124"),
        ("find / -maxdepth 1 -name etc", "/etc"),
        ("env | grep -c -E '^(SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS)=' || true", "0"),
    ],
)
def test_what_shells_do_every_day_works(shared_world: World, engine: Engine, script: str, said: str) -> None:
    assert shared_world.run(engine, script).stdout.strip() == said


def test_a_workspace_may_lie_in_shared_memory(shared_world: World, engine: Engine) -> None:
    folder = Path("/dev/shm") / shared_world.base.name
    folder.mkdir()
    try:
        bounds = Bounds(writable=(folder,))
        done(shared_world, engine, "echo x > made; cat made", bounds=bounds, cwd=folder)
        assert (folder / "made").read_text() == "x\n"
    finally:
        shutil.rmtree(folder)
