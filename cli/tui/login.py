"""Ways to a model: a key, a server on this machine, another address, the demo. The start panel and `/login` show it.

A key is tried with one request and then stored by `cli.auth`; here it is only typed, unseen, and forgotten. Nothing is
asked before the user chooses, but for the usual ports of this machine.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.worker import Worker

from .login_steps import Blank, Choice, FormStep, ListStep
from .text import MUTED, one_line, safe
from .text_input import writing

if TYPE_CHECKING:
    from ...agent.local_servers import LocalServer

T = TypeVar("T")
Ports = tuple[tuple[str, int], ...]
_MODELS = 3
"""Models that are offered of each server."""
_PREFIXES = {"Ollama": "ollama_chat", "LM Studio": "lm_studio", "llama.cpp": "llamacpp", "vLLM": "hosted_vllm"}
"""The provider of each server that `agent.local_servers` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginResult:
    """What was chosen."""

    model: str
    """The model's name as `--model` takes it; `demo` for the demo."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables to set for the rest of this run: addresses, and a key that is not stored."""
    said: str = ""
    """What was kept, and where; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What is tried with a request."""

    variable: str
    key: str = field(repr=False)
    model: str
    """Empty: the one that the key stands for."""
    url: str = ""
    """Empty: the provider's own."""

    @property
    def environ(self) -> dict[str, str]:
        """The variables that make the request go there."""
        address = {"OPENAI_BASE_URL": self.url} if self.url else {}
        return {**address, **({self.variable: self.key} if self.key else {})}


class LoginPanel(Vertical):
    """One step at a time. `Done` tells that there is a model now."""

    DEFAULT_CSS = "LoginPanel { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", show=False)]

    class Done(Message):
        """A model was chosen."""

        def __init__(self, result: LoginResult) -> None:
            super().__init__()
            self.result = result

    def __init__(self, *, focus_at_once: bool = True, ports: Ports | None = None) -> None:
        """`ports` are names and ports of servers to look for, the usual ones if not given."""
        super().__init__()
        self._focus = focus_at_once
        self._wanted = False
        """It takes the keys even from somebody who writes."""
        self._ports = ports
        self._servers: dict[str, tuple[LocalServer, str]] = {}
        """Server and model by the ids of their choices."""
        self._back: list[str] = []
        """The steps that lead here: ids of choices."""
        self._trial: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield Static(safe("Looking for model servers on this machine …", MUTED))

    @work(exclusive=True)
    async def on_mount(self) -> None:
        """Looks for servers, some tenths of a second, and shows what can be chosen."""
        from ...agent.local_servers import USUAL, find_local_servers

        self._wanted = writing(self.screen.focused)  # what stands there was sent, and needs a model
        found = await find_local_servers(USUAL if self._ports is None else self._ports)
        several = ((server, model) for server in found for model in server.models[:_MODELS])
        self._servers = {f"server-{number}": one for number, one in enumerate(several)}
        await self._show("menu")

    @property
    def escape_means(self) -> str:
        """What Esc would do here; empty where it means what it means outside."""
        return "one step back" if self._back else ""

    @property
    def at_start(self) -> bool:
        """There is no step to go back to."""
        return not self._back

    def focus_step(self) -> None:
        """Puts the cursor where the step begins; if there is none yet, as soon as there is."""
        self._focus = self._wanted = True
        for step in (*self.query(ListStep), *self.query(FormStep)):
            step.focus_first()

    async def _show(self, name: str) -> None:
        """Goes to a step. It has the keys before the last one is gone: none of them may fall between the two."""
        step = self._step(name)
        with cast(App[object], self.app).batch_update():
            before = list(self.children)
            await self.mount(step)
            if self._focus and (self._wanted or not writing(self.screen.focused)):
                step.focus_first()
            await self.remove_children(before)
        self._focus = self._wanted = True

    def on_key(self, event: events.Key) -> None:
        """Keeps from the prompt what may be the rest of a key: it was typed after Enter."""
        if event.is_printable and self.query(FormStep):
            event.stop()

    def on_paste(self, event: events.Paste) -> None:
        """The same for a paste at a step that takes none: it may be a key."""
        event.stop()

    def _step(self, name: str) -> ListStep | FormStep:
        match name:
            case "menu":
                return ListStep(_MENU_TITLE, self._menu(), "1–9, or ↑↓ and Enter")
            case "key":
                return ListStep(Content("Whose key?"), _providers(), "1–9, or ↑↓ and Enter   Esc: back")
            case "url":
                return FormStep(Content("A server that speaks OpenAI's chat API."), _URL)
            case provider:
                return _key_form(provider)

    def _menu(self) -> list[Choice]:
        servers = (
            Choice(id=name, text=f"{server.name} :{server.url.rpartition(':')[2]}", more=one_line(model, 40))
            for name, (server, model) in self._servers.items()
        )
        return [
            Choice(id="key", text="paste an API key"),
            *servers,
            Choice(id="url", text="another URL"),
            Choice(id="demo", text="demo", more="scripted: no key, no network"),
        ]

    @on(OptionList.OptionSelected)
    async def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_list.parent is not self.children[-1]:
            return  # a second key at a list that is on its way out
        name = event.option_id or ""
        if name == "demo":
            self.post_message(self.Done(LoginResult(model="demo")))
        elif name in self._servers:
            self._use_server(*self._servers[name])
        else:
            self._back.append(name)
            await self._show(name)

    async def action_back(self) -> None:
        """Goes one step back; from the first one the key means what it means outside."""
        if self.at_start:
            return
        if self._trial is not None:
            self._trial.cancel()
        self._back.pop()
        await self._show(self._back[-1] if self._back else "menu")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self.at_start if action == "back" else super().check_action(action, parameters)

    def _use_server(self, server: LocalServer, model: str) -> None:
        from ...agent.model.providers import OLLAMA, PROVIDERS

        prefix = _PREFIXES.get(server.name, "openai")
        provider = OLLAMA if prefix == OLLAMA.prefix else PROVIDERS[prefix]
        url = server.url if provider is OLLAMA else f"{server.url}/v1"
        name = f"{prefix}/{model}"
        said = f"{server.name} on {server.url}. {_keep_model(name)}"
        self.post_message(self.Done(LoginResult(model=name, environ={provider.bases[0]: url}, said=said)))

    @on(FormStep.Filled)
    def _filled(self, event: FormStep.Filled) -> None:
        event.stop()
        values, provider = event.values, self._back[-1]
        if provider == "url":
            self._trial = self._try_url(_Attempt(variable="OPENAI_API_KEY", **values))
        else:
            from ...agent.credentials import variable_for

            self._trial = self._try_key(
                provider,
                _Attempt(variable=variable_for(provider), key=values["key"], model=values.get("model", "")),
            )

    @work(exclusive=True)
    async def _try_key(self, provider: str, attempt: _Attempt) -> None:
        """Tries a key and stores it. One that is refused stays in its line; one that could not be tried is stored."""
        from ...agent.credentials import set_key
        from ...agent.errors import ConfigError
        from ..auth import model_of_key

        model = _full_name(provider, attempt.model) if attempt.model else model_of_key(attempt.variable) or ""
        problem, refused = await self._try(attempt, model if attempt.model else None)
        if refused:
            self._form.fail(f"Not stored. {problem}")
            return
        try:
            set_key(_user_folder(), provider, attempt.key)
        except ConfigError as error:
            self._form.fail(str(error))
            return
        untested = f" It could not be tried: {problem}" if problem else ""
        kept = f" {_keep_model(model)}" if attempt.model else ""
        self.post_message(self.Done(LoginResult(model=model, said=f"{attempt.variable} is stored.{untested}{kept}")))

    @work(exclusive=True)
    async def _try_url(self, attempt: _Attempt) -> None:
        """Tries an address. Nothing of it is stored."""
        name = _full_name("openai", attempt.model)
        problem, _ = await self._try(attempt, name)
        if problem:
            self._form.fail(problem)
            return
        said = f"{attempt.url} is used for this run only; OPENAI_BASE_URL and DEEPAGENT_MODEL make it last."
        self.post_message(self.Done(LoginResult(model=name, environ=attempt.environ, said=said)))

    async def _try(self, attempt: _Attempt, model: str | None) -> tuple[str, bool]:
        """What went wrong, and whether the provider refused. In a thread: a large library may have to be loaded."""
        self._form.wait("One small request is on its way …")
        environ = {**os.environ, **attempt.environ}
        return await _in_thread(partial(_trial, attempt.variable, attempt.key, environ, model))

    @property
    def _form(self) -> FormStep:
        return self.query_one(FormStep)


class LoginScreen(ModalScreen["LoginResult | None"]):
    """The same, above what is there; None where nothing was chosen."""

    DEFAULT_CSS = """
    LoginScreen { align: center middle; }
    LoginScreen > LoginPanel { width: 72; max-width: 100%; max-height: 100%; padding: 1 2; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False)]

    def __init__(self, *, ports: Ports | None = None) -> None:
        super().__init__()
        self._ports = ports

    def compose(self) -> ComposeResult:
        yield LoginPanel(ports=self._ports)

    @on(LoginPanel.Done)
    def _done(self, event: LoginPanel.Done) -> None:
        event.stop()
        self.dismiss(event.result)

    async def action_close(self) -> None:
        """Goes a step back, from the first one out; then everything is as it was."""
        panel = self.query_one(LoginPanel)
        if panel.at_start:
            self.dismiss(None)
        else:
            await panel.action_back()


_MENU_TITLE = Content.assemble("Which model? ", ("One of these is enough:", MUTED))
_URL = (
    Blank(name="url", hint="base URL, such as http://127.0.0.1:8080/v1"),
    Blank(name="model", hint="the model's name there"),
    Blank(name="key", hint="API key, if it wants one", secret=True, optional=True),
)


def _providers() -> list[Choice]:
    """All providers; those whose key alone is enough come first."""
    from ...agent.credentials import PROVIDERS, variable_for
    from ..first_steps import DEFAULTS

    models = dict(DEFAULTS)
    order = {variable: position for position, variable in enumerate(models)}
    known = sorted(PROVIDERS, key=lambda name: order.get(variable_for(name), len(order)))
    return [Choice(id=name, text=name, more=models.get(variable_for(name), "")) for name in known]


def _key_form(provider: str) -> FormStep:
    from ...agent.credentials import variable_for
    from ..auth import model_of_key

    key = Blank(name="key", hint="paste the key; it is not shown", secret=True)
    model = Blank(name="model", hint=f"model, as {provider} calls it")
    needs_model = model_of_key(variable_for(provider)) is None
    title = Content.assemble(f"The key for {provider}. ", ("One small request tries it, then it is stored.", MUTED))
    return FormStep(title, (key, model) if needs_model else (key,))


def _full_name(provider: str, model: str) -> str:
    return model if model.startswith(f"{provider}/") else f"{provider}/{model}"


async def _in_thread(work: Callable[[], T]) -> T:
    """What `work` gives, from a thread that neither cancelling nor leaving waits for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        result = work()
        with suppress(RuntimeError):  # the screen is gone
            loop.call_soon_threadsafe(lambda: done.cancelled() or done.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return await done


def _trial(variable: str, key: str, environ: Mapping[str, str], model: str | None) -> tuple[str, bool]:
    from ..auth import try_key

    trial = asyncio.run(try_key(variable, key, environ=environ, model=model))
    return trial.problem, trial.refused


def _user_folder() -> Path:
    from ...agent.config import user_folder

    return user_folder(os.environ)


def _keep_model(model: str) -> str:
    """Keeps a model's name for the next start, and says so, or why not."""
    from ...agent.errors import ConfigError
    from ..auth import keep_model

    try:
        path = keep_model(_user_folder(), model)
    except ConfigError as error:
        return f"It is not kept for the next start: {error}"
    return f"Kept as the model in {path}." if path else "The settings name another model, which stays."
