"""Ways to a model: the list, a key that is tried, refused, stored; a server found; another address."""

from __future__ import annotations

import os
import re
import stat
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagent.cli.tui.login import LoginPanel, LoginResult, LoginScreen, Ports
from deepagent.cli.tui.start import StartPanel
from screens_host import SIZES, Host, assert_harmless, lines, settle, showing, text
from server import Answer, ModelServer
from textual import on
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input

Server = Callable[..., ModelServer]
KEY = "my-own-kind-of-key-0123456789"
NONE: Ports = ()


@pytest.fixture
def user() -> Path:
    """The user's own folder, not there yet."""
    return Path(os.environ["HOME"]) / ".deepagents"


def settings(user: Path, text: str) -> Path:
    """Writes the user's settings."""
    user.mkdir()
    (user / "deepagent.toml").write_text(text)
    return user / "deepagent.toml"


def refusal(key: str = KEY) -> Answer:
    """What a provider says to a wrong key; it repeats the key."""
    return {"status": 401, "body": {"error": {"message": f"Incorrect API key provided: {key} [/b]", "code": "invalid"}}}


def paste(app: Host, value: str) -> None:
    app.post_message(Paste(value))


async def to_openai(pilot: Pilot[None]) -> None:
    """Goes to the line for OpenAI's key."""
    await pilot.press("1", "2")
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_the_list_is_numbered_and_says_what_it_needs(size: tuple[int, int]) -> None:
    async with showing(LoginScreen(ports=NONE), size) as (app, pilot):
        shown = text(app)
        for words in ("1 paste an API key", "2 another URL", "3 demo", "no key, no network"):
            assert words in shown
        await pilot.press("3")
        assert app.results == [LoginResult(model="demo")]


async def test_arrows_and_enter_choose_and_escape_goes_back_step_by_step() -> None:
    async with showing(LoginScreen(ports=NONE)) as (app, pilot):
        await pilot.press("enter", "down", "enter")
        await settle(pilot)
        assert "The key for openai" in text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "Whose key?" in text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "paste an API key" in text(app)
        assert not app.results
        await pilot.press("escape")
        assert app.results == [None]


async def test_a_key_is_tried_stored_for_the_user_alone_and_never_shown(
    model_server: Server, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_server({"text": "ok"})
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    async with showing(LoginScreen(ports=NONE)) as (app, pilot):
        await to_openai(pilot)
        paste(app, f"{KEY}\n")
        await pilot.pause()
        assert "•" * len(KEY) in text(app)
        assert KEY not in text(app)
        await pilot.press("ctrl+a", "ctrl+shift+a", "ctrl+c", "ctrl+x")
        assert KEY not in app.clipboard
        assert app.screen.query_one(Input).value == KEY, "cutting does nothing either"
        await pilot.press("enter")
        await settle(pilot)
        (result,) = app.results
        assert isinstance(result, LoginResult)
        assert result.model.startswith("openai/")
        assert not result.environ
        assert "OPENAI_API_KEY is stored" in result.said
        assert KEY not in f"{result} {app.screen.tree}"
    (request,) = [r for r in model.requests if r.method == "POST"]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    path = user / "credentials.toml"
    assert tomllib.loads(path.read_text())["keys"] == {"OPENAI_API_KEY": KEY}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("size", SIZES)
async def test_a_refused_key_stays_on_the_screen_with_the_reason(
    model_server: Server, user: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    model = model_server(refusal(), {"text": "ok"})
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    async with showing(LoginScreen(ports=NONE), size) as (app, pilot):
        await to_openai(pilot)
        paste(app, KEY)
        await pilot.press("enter")
        await settle(pilot)
        shown = " ".join(text(app).split())
        assert "Not stored." in shown
        assert "Incorrect API key provided:" in shown
        assert "[/b]" in shown
        assert KEY not in shown
        assert not app.results
        assert not (user / "credentials.toml").exists()
        line = app.screen.query_one(Input)
        assert line.has_focus
        assert not line.disabled
        paste(app, f"{KEY}-new")  # the refused one is selected, so this takes its place
        await pilot.press("enter")
        await settle(pilot)
        assert len(app.results) == 1
    assert tomllib.loads((user / "credentials.toml").read_text())["keys"] == {"OPENAI_API_KEY": f"{KEY}-new"}


async def test_a_key_that_cannot_be_tried_is_stored_and_it_is_said(
    model_server: Server, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", model_server({"status": 503, "body": "down"}).url)
    async with showing(LoginScreen(ports=NONE)) as (app, pilot):
        await to_openai(pilot)
        paste(app, KEY)
        await pilot.press("enter")
        await settle(pilot)
        (result,) = app.results
        assert isinstance(result, LoginResult)
        assert "could not be tried" in result.said
    assert (user / "credentials.toml").exists()


async def test_what_cannot_be_a_key_is_refused_in_words(user: Path) -> None:
    async with showing(LoginScreen(ports=NONE)) as (app, pilot):
        await pilot.press("1", "9")
        await settle(pilot)
        assert "The key for azure" in text(app)
        assert len(app.screen.query(Input)) == 2, "no model of azure is known, so it is asked for"
        await pilot.press("enter")
        assert not app.results, "an empty line is not taken"


async def test_going_back_while_it_is_tried_stores_nothing(
    model_server: Server, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_server({"text": "ok", "wait": 0.3})
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    async with showing(LoginScreen(ports=NONE)) as (app, pilot):
        await to_openai(pilot)
        paste(app, KEY)
        await pilot.press("enter")
        await pilot.pause()
        assert "on its way" in text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "Whose key?" in text(app)
        end = time.monotonic() + 5
        while not model.requests and time.monotonic() < end:
            await pilot.pause(0.05)
        await pilot.pause(0.5)
        assert not app.results
    assert model.requests, "it was under way"
    assert not (user / "credentials.toml").exists()


async def test_a_server_on_this_machine_is_offered_and_kept(model_server: Server, user: Path) -> None:
    listing = {"data": [{"id": name} for name in ("qwen3:8b", "[b]x[/b] [=", "中文", "fourth")]}
    local = model_server(routes={"/v1/models": listing})
    path = settings(user, "# mine\n[context]\ncompact_at = 0.5\n")
    async with showing(LoginScreen(ports=(("Ollama", local.port), ("vLLM", 1)))) as (app, pilot):
        shown = text(app)
        assert re.search(rf"2 Ollama :{local.port} +qwen3:8b", shown)
        assert "[b]x[/b] [=" in shown
        assert "fourth" not in shown, "a few of each server are enough"
        assert "5 another URL" in shown
        await pilot.press("2")
        await settle(pilot)
        (result,) = app.results
    assert isinstance(result, LoginResult)
    assert result.model == "ollama_chat/qwen3:8b"
    assert result.environ == {"OLLAMA_API_BASE": f"http://127.0.0.1:{local.port}"}
    kept = path.read_text()
    assert tomllib.loads(kept) == {"model": "ollama_chat/qwen3:8b", "context": {"compact_at": 0.5}}
    assert "# mine" in kept
    assert str(path) in result.said


async def test_a_model_that_the_settings_name_is_not_replaced(model_server: Server, user: Path) -> None:
    local = model_server()
    path = settings(user, 'model = "openai/mine"\n')
    async with showing(LoginScreen(ports=(("vLLM", local.port),))) as (app, pilot):
        await pilot.press("2")
        await settle(pilot)
        (result,) = app.results
    assert isinstance(result, LoginResult)
    assert result.model == "hosted_vllm/test-model"
    assert list(result.environ.values()) == [local.url]
    assert "name another model" in result.said
    assert path.read_text() == 'model = "openai/mine"\n'


async def test_another_url_is_tried_and_used_for_this_run_alone(model_server: Server, user: Path) -> None:
    model = model_server({"status": 400, "body": {"error": {"message": "no model [x"}}}, {"text": "ok"})
    async with showing(LoginScreen(ports=NONE)) as (app, pilot):
        await pilot.press("2")
        await settle(pilot)
        paste(app, model.url)
        await pilot.press("enter", *"abc", "enter")
        assert not model.bodies, "the key is optional, but its line is gone to first"
        await pilot.press("enter")
        await settle(pilot)
        assert "no model [x" in text(app)
        assert not app.results
        await pilot.press("tab", "tab", *"key", "enter")
        await settle(pilot)
        (result,) = app.results
    assert isinstance(result, LoginResult)
    assert result.model == "openai/abc"
    assert result.environ == {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "key"}
    assert "for this run only" in result.said
    assert "key" not in repr(result).replace("OPENAI_API_KEY", "")
    assert [body["model"] for body in model.bodies] == ["abc", "abc"]
    assert not (user / "credentials.toml").exists()
    assert not (user / "deepagent.toml").exists()
    assert "OPENAI_BASE_URL" not in os.environ, "setting variables is the app's business"


class PanelHost(Host):
    """A start panel without a model, and a line that had the focus before."""

    def __init__(self) -> None:
        self.panel = StartPanel()
        super().__init__(self.panel)

    def compose(self) -> Iterator[Any]:
        yield self.panel
        yield Input(id="prompt")

    @on(LoginPanel.Done)
    def note(self, message: LoginPanel.Done) -> None:
        self.results.append(message.result)


@pytest.mark.parametrize("focus", [True, False])
async def test_the_start_panel_offers_the_same_in_the_place_of_the_model(
    focus: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepagent.agent.local_servers.USUAL", ())
    app = PanelHost()
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one("#prompt").focus()
        app.panel.show_login(focus=focus)
        await settle(pilot)
        assert "1 paste an API key" in text(app)
        assert "Model  " not in text(app)
        assert lines(app).index(next(line for line in lines(app) if "Which model?" in line)) == 2
        assert app.query_one("#prompt").has_focus is not focus
        app.panel.show_login()
        await settle(pilot)
        await pilot.press("1", "escape", "3")
        await settle(pilot)
        assert app.results == [LoginResult(model="demo")]
        assert_harmless(app)
