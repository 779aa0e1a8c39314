"""The tools that come with the package, one file each."""
