"""A tensor kernel as schedule heuristics and predictions see it: its problem, and the time that is predicted for it."""
