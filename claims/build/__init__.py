"""Claims made by sampling a target: the offline builder and what it is made of."""
