"""Part of the rim: what a run or a benchmark run came to, in words, pictures and one HTML file that opens from disk."""
