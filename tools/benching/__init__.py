"""What `tools.bench` and `tools.device_check` measure with: models of real shapes, random tools, callers."""
