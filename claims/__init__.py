"""What is asked: claims about a target, the transcripts they are about, and, behind a wall, their labels."""
