"""The tokenizer's tables, from where litellm ships them: nothing is downloaded, and litellm is not imported."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from ..context.tokens import Encode

_TABLES = "litellm_core_utils/tokenizers"
_ENCODING = "o200k_base"


def load_encoder() -> Encode:
    """The function that turns a text into tokens. Takes up to a second. Raises `FileNotFoundError` without tables."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("litellm is not installed")
    tables = Path(spec.origin).parent / _TABLES
    if not tables.is_dir():
        raise FileNotFoundError(tables)
    os.environ["TIKTOKEN_CACHE_DIR"] = str(tables)
    import tiktoken

    return tiktoken.get_encoding(_ENCODING).encode_ordinary
