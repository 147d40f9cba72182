"""Skills: folders with a SKILL.md, discovered, validated and listed; their bodies are read only when needed."""
