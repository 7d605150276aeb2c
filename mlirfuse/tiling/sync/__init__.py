"""How partial results of several blocks meet: semaphores, words that announce themselves, clusters."""
