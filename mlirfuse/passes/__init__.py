"""The graph and tile passes, one a file, and the manager that runs them with upstream's in one pipeline."""
