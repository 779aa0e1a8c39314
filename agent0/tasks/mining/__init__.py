"""Tasks from published packages: the changes between two releases, and bugs made by changing the syntax tree."""
