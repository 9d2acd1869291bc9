"""The simulation for clients that are no Python optimisers: verbs over JSON lines or MCP, and a log as any other."""
