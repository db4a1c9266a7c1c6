"""Reports, exports and totals of a class, from stored results and the gradebook."""
