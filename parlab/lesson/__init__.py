"""What a lesson's cell may import: checks, test cases, published numbers and drawings."""
