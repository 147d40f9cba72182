"""The context layer: the log, the view derived from it, and what makes the view smaller without losing a byte.

Knows no screen and no provider. The summarizer is a callable handed in; files are reached through `Storage`.
"""
