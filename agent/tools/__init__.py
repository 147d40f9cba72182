"""The built-in tools, one module a family; each a plain async function."""
