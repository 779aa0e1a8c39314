"""The composition root, part of the rim: settings become a log, ports, handlers and tables that know one another. One
file for each thing that commands do; ``world`` is what all of them stand on."""
