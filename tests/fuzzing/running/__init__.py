"""Running a program with a backend and checking the results, one process or many."""
