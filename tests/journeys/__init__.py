"""What three journeys through the program touch: the numbers behind `make journeys`."""
