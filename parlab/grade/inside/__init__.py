"""What runs beside a student's code in its sandbox; nothing here is trusted by the grader."""
