"""Part of the rim: the Python API, ``import agent0``. It calls what the command line calls; nothing is done twice."""
