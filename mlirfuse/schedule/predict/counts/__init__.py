"""What the predictions of all families count alike: elements, sectors, instructions, exchanges."""
