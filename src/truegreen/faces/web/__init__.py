"""The web face: the HTTP API and the dashboard. Async lives here and nowhere below."""
