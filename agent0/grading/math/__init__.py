"""The exact grader of mathematical answers: normal forms, parsing, comparison."""
