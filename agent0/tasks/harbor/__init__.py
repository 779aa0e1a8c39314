"""Task folders of Harbor: tasks of families written as such."""
