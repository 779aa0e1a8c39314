"""The routes below ``/v1``: each calls the query functions that the command line calls."""
