"""Commands about files of questions."""
