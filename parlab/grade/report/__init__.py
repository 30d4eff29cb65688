"""What a run hands out: tables, pages, a picture, import files."""
