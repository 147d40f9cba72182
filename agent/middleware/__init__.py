"""Middleware: policies around the loop, one small module each. `base` is the seam."""
