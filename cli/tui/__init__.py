"""The screen: a Textual app over the agent's events. The only package that imports Textual.

`app` puts the screen together, `conversation` runs the agent behind it, `presenter` holds the one `match` over events.
No widget keeps state of the conversation; whatever is shown can be made again from the log.
"""
