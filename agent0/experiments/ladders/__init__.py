"""What studies on ladders report beside heights: costs, samples of the base, leads of alarms."""
