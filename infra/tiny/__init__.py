"""The built-in small model: how it is made (``build``), and the packaged result (``base/``)."""
