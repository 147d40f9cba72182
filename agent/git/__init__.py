"""Git: the user's repositories, which are only looked at, and a repository of our own for the states of files.

`process` runs git so that nothing of a repository can make it run anything else; `repository` asks what people want to
know; `shadow` takes down a work tree; `objects` keeps contents. `repository` is the one module that imports GitPython.
"""

from .process import GitError
from .repository import DIFF_BYTES, GitState, changes, make_repository, state

__all__ = ["DIFF_BYTES", "GitError", "GitState", "changes", "make_repository", "state"]
