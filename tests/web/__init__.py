"""Requests and searches of students, and tools of MCP servers, against real servers that misbehave."""
