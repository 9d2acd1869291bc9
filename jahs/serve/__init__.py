"""The simulation for clients not written in Python: commands over JSON lines or MCP, and the same log."""
