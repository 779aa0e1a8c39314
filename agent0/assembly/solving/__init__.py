"""Part of the rim: work on a person's repository: copied, submitted, followed, and written back once they accept it."""
