"""Part of the rim: runs in a browser and over HTTP. Reads with the query functions of the command line, from the same
tables; the sequence of an event is the one cursor of pages, streams and past moments."""
