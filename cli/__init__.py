"""The command line: arguments, settings layers, the headless printer and the demo."""
