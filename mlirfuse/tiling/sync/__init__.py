"""Combination of several blocks' partials: through semaphores, flag-in-data exchange, or clusters."""
