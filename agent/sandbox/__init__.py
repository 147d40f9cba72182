"""The sandbox: what shell commands may reach, and the means of the system that hold them to it."""
