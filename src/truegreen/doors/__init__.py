"""The fence at each door: whatever an agent asks for, its token and fence are looked at first."""
