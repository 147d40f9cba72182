"""The errors of the agent, in one tree.

```
DeepagentError                 anything that this program raises on purpose; its text is fit for a person
├── ConfigError                a setting, a flag or a file of ours is wrong; names file, line and key where it can
├── SessionError               a session cannot be found, opened or continued
└── ModelError                 a model call failed for good
    ├── AuthError              no key, or the provider refuses it (401, 403)
    ├── UnknownModelError      the provider does not know the model (404)
    ├── BadRequestError        the provider refuses the request (400, 422)
    │   └── ContextOverflowError  … because it is longer than the window
    ├── OutOfCreditError       the account has no credit left (402)
    └── RetryableError         another attempt may succeed
        ├── RateLimitError     429
        ├── ServerError        5xx, overloaded
        ├── ConnectionFailed   no route, refused, DNS, TLS, proxy
        └── BrokenStreamError  the stream ended before the answer did
```

Beside the tree stands `context.storage.StorageError`: a file of ours cannot be written or read.

`agent.model.translate` makes the model errors from what a provider or a library says; nothing else does. A tool's
failure is no error of this tree: it is an answer to the model (`agent.tool.ToolResult`).
"""

from __future__ import annotations


class DeepagentError(Exception):
    """The root of the tree."""

    kind = "error"
    """The word that the JSON output uses."""


class ConfigError(DeepagentError):
    """A setting, a flag or a file of ours is wrong."""

    kind = "config"


class SessionError(DeepagentError):
    """A session cannot be found, opened or continued."""

    kind = "session"


class ModelError(DeepagentError):
    """A model call failed."""

    kind = "model"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status, where there was one."""


class AuthError(ModelError):
    """There is no key, or the provider refuses it."""

    kind = "auth"


class UnknownModelError(ModelError):
    """The provider does not know the model."""

    kind = "unknown_model"


class OutOfCreditError(ModelError):
    """The account has no credit left."""

    kind = "out_of_credit"


class BadRequestError(ModelError):
    """The provider refuses the request as it is."""

    kind = "bad_request"


class ContextOverflowError(BadRequestError):
    """The request is longer than the model's window."""

    kind = "overflow"

    def __init__(self, message: str, *, status: int | None = None, window: int | None = None) -> None:
        super().__init__(message, status=status)
        self.window = window
        """The window that the provider named, in tokens, or None."""


class RetryableError(ModelError):
    """Another attempt may succeed."""

    kind = "unavailable"

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after
        """Seconds that the provider asks to wait, or None."""


class RateLimitError(RetryableError):
    """Too many requests or tokens."""

    kind = "rate_limit"


class ServerError(RetryableError):
    """The provider failed or is overloaded."""

    kind = "server"


class ConnectionFailed(RetryableError):
    """The provider was not reached."""

    kind = "connection"


class BrokenStreamError(RetryableError):
    """The stream ended before the answer did."""

    kind = "broken_stream"
