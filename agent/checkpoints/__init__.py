"""Checkpoints: what each call of a tool did to files, so that it can be shown, undone and redone.

`states` are the words, `store` keeps contents, `keeper` takes down what calls do, `timeline` reads the log, `plan` says
what going back would do, `places` does it, and `files` is what people and programs use.
"""
