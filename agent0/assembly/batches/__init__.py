"""Part of the rim: files of questions, answered row by row."""
