"""Part of the rim: traces of other frameworks come in, tokens are checked, and imported attempts are trained on."""
