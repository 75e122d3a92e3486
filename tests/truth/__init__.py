"""How often truegreen tells the truth about bug fixes: the benchmark behind `make truth`."""
