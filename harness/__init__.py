"""What is measured: arms over the same claims, scored, compared, and written down."""
