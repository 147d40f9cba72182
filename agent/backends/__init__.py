"""Backends: what the file tools talk to. `protocol` is the seam, `local` the real file system."""
