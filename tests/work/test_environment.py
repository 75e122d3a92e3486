"""An agent's environment is built from an allow-list."""

from __future__ import annotations

from truegreen.work.environment import agent_environment

HOST = {
    "PATH": "/bin",
    "HOME": "/home/x",
    "LC_ALL": "C.UTF-8",
    "AWS_SECRET_ACCESS_KEY": "a-very-secret-key",
    "ANTHROPIC_API_KEY": "sk-ant-very-secret",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    "MY_TOKEN": "short",
    "TRUEGREEN_STORE": "sqlite:///x",
    "TRUEGREEN_TOKEN_FILE": "/outer/token",
    "LD_PRELOAD": "/evil.so",
}


def test_nothing_is_inherited_but_what_is_named():
    env, secrets = agent_environment(HOST, (), {})
    assert env == {"PATH": "/bin", "HOME": "/home/x", "LC_ALL": "C.UTF-8"}
    assert secrets == ()


def test_a_client_gets_its_own_and_its_keys_are_secrets():
    env, secrets = agent_environment(HOST, ("ANTHROPIC_*", "MY_TOKEN"), {})
    assert {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "MY_TOKEN"} <= env.keys()
    assert "AWS_SECRET_ACCESS_KEY" not in env
    assert secrets == (b"sk-ant-very-secret",)


def test_a_run_inside_a_run_does_not_speak_for_the_outer_one():
    env, _ = agent_environment(HOST, ("TRUEGREEN_*",), {"TRUEGREEN_RUN": "run_mine"})
    assert [name for name in env if name.startswith("TRUEGREEN_")] == ["TRUEGREEN_RUN"]
