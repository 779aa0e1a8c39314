"""Adapters: servers, files, models and sandboxes behind the ports that ``agent0`` names."""
