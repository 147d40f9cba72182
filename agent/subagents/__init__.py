"""Sub-agents: pieces of work that an agent hands on, each with a context, a log and limits of its own."""
