"""Clusters that do what a real one cannot be made to do."""
