"""Models: one protocol, three implementations, and what they share above the wire.

`types` is the seam; `choose` picks the implementation; `wire` makes the OpenAI-shaped request, `assemble` reads chunks,
`translate` makes our errors, `retry` wraps any model. Only `litellm_lane` imports litellm, only `lean` imports httpx.
"""
