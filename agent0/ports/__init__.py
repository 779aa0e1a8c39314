"""What thought needs of the world: roles that ``infra`` plays. A handler names the ports it wants as parameters."""
