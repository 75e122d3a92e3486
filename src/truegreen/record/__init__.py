"""What is true: the only writer of state. It starts no process and knows no agent."""
