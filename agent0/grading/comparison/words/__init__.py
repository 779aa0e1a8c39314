"""Answers that are words: times, dates, letters of choices, statements, words for nothing, words in a row."""
