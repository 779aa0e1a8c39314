"""The bus: delivers events to handlers and commits their effects."""
