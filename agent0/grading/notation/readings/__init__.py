"""Other readings of an answer, tried one after the other where the first one is not equal: without notes, as formulas
for spoken words, in notations that only the expected answer's kind allows."""
