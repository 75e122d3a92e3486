"""What happens: processes, workspaces, agents, gates. This wing knows no database."""
