"""Grades a class: submissions in, scores and feedback out. It imports ``parlab.lesson`` alone."""
