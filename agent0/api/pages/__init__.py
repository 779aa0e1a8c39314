"""The pages: each a template over what its route read, with a twin in JSON of the same name."""
