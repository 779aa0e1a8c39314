"""Part of the rim: reports on a run or a benchmark run as text, charts, and one HTML file that opens from disk."""
