"""From a lesson's source to its notebooks: what ``parlab build`` and ``parlab links`` do."""
