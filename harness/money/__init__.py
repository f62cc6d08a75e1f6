"""What a run costs: before it starts, while it runs, and afterwards."""
