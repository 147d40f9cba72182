"""Approvals: may this call run? Rules, modes, and the reading of shell commands."""
