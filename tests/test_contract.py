"""The frozen contract: its digest, its checks, its policies."""

from __future__ import annotations

import json
import os
import string
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from tests.test_contract_file import EXAMPLE, refused
from truegreen import contract as edge
from truegreen.contract import (
    AgentDefinition,
    Budget,
    Caps,
    ConfigFile,
    Contract,
    Duration,
    Evaluator,
    Gate,
    GateKind,
    Gateway,
    QaTerms,
    contract_digest,
    make_contract,
    read_contract,
    read_toml,
)
from truegreen.contract.terms import GATE_USES, RETRY_WORDS, Source
from truegreen.errors import InvalidInput
from truegreen.model import (
    NO_BLIND_RETRY,
    PARENT,
    RESCUABLE,
    ExitDetail,
    ExitReason,
    Level,
    Mode,
    NoopPolicy,
    ProofMode,
)

NAMES = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
WORDS = st.lists(TEXTS, max_size=3).map(lambda words: ("program", *words))
SPANS = st.integers(1, 10**12).map(Duration)
GATES = st.builds(
    Gate,
    name=NAMES,
    command=WORDS,
    before=st.sampled_from(edge.Before),
    protect=st.lists(TEXTS.filter(bool), max_size=2).map(tuple),
    tampering=st.sampled_from(edge.Tampering),
    timeout=SPANS,
    env=st.dictionaries(NAMES.map(lambda name: f"V_{name}"), TEXTS, max_size=3),
    required=st.booleans(),
)
SCORES = st.floats(0.01, 1)
EVALUATORS = st.builds(
    Evaluator,
    name=NAMES.map(lambda name: f"judge-{name}"),
    model=st.just("openai:m"),
    threshold=SCORES,
    rescue_threshold=st.just(1.0),
)
CONTRACTS = st.builds(
    Contract,
    title=TEXTS.map(lambda text: f"t{''.join(filter(str.isprintable, text))}"),
    goal=TEXTS,
    role=st.just("") | NAMES,
    mode=st.sampled_from(Mode),
    command=WORDS,
    gates=st.lists(GATES, max_size=3, unique_by=lambda gate: gate.name).map(tuple),
    evaluators=st.lists(EVALUATORS, max_size=2, unique_by=lambda judge: judge.name).map(tuple),
    caps=st.builds(Caps, turns=st.integers(1, 999), time=SPANS, cost_usd=st.floats(0.01, 1e6)),
    budget=st.builds(Budget, attempts=st.integers(1, 100), reentries=st.integers(0, 100)),
    rescue=st.sets(st.sampled_from(sorted(RESCUABLE))).map(tuple),
    retry=st.sets(st.sampled_from(sorted(RETRY_WORDS))).map(tuple),
    isolation=st.sampled_from(edge.Isolation),
    claim_file=st.none() | TEXTS,
    labels=st.lists(NAMES, max_size=4).map(tuple),
    priority=st.integers(-100, 100),
)


@pytest.mark.criterion("F15")
@given(CONTRACTS)
def test_a_contract_is_read_back_from_its_text_with_the_same_digest(contract):
    again = read_contract(contract.text())
    assert again == contract
    assert again.text() == contract.text()
    assert contract_digest(again) == contract_digest(contract)
    assert json.loads(contract.text()) == edge.plain(contract)


@pytest.mark.criterion("F15")
def test_the_digest_is_the_same_in_every_process():
    code = f"""if True:
        from truegreen.contract import read_toml, contract_digest
        file = read_toml({EXAMPLE!r}, "truegreen.toml")
        labels = tuple({{"b", "a", "c", "x", "y"}})
        retry = list({{"done", "oom", "signaled"}})
        contract = file.contract("fix-parser", labels=labels, retry=retry)
        print(contract_digest(contract), contract.definition().definition_digest())
    """
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "random")
    }
    assert len(said) == 1
    assert said.pop().count("sha256:") == 2


@pytest.mark.criterion("F15")
def test_the_order_of_what_has_no_order_does_not_count():
    rescue: Any = ("unclaimed", "turn_cap")
    one = Contract(title="t", labels=("a", "b"), retry=("oom", "done"), rescue=rescue)
    two = Contract(
        title="t",
        labels=("b", "a", "b"),
        retry=("done", "oom", "oom"),
        rescue=(ExitDetail.TURN_CAP, ExitDetail.UNCLAIMED),
    )
    assert contract_digest(one) == contract_digest(two)
    approvals = [("git push", "deploy"), ("deploy", "git push", "deploy")]
    assert len({contract_digest(Contract(title="t", approvals=each)) for each in approvals}) == 1
    assert QaTerms(roles=("product", "coder", "coder")) == QaTerms()
    whole: Any = 5
    assert contract_digest(Contract(title="t", caps=Caps(cost_usd=whole))) == contract_digest(
        Contract(title="t", caps=Caps(cost_usd=5.0))
    )
    env = {"A": "1", "B": "2"}
    turned = dict(reversed(env.items()))
    gates = [Gate(name="g", command=("x",), env=each) for each in (env, turned)]
    assert len({contract_digest(Contract(title="t", gates=(gate,))) for gate in gates}) == 1


CHANGES: dict[str, Any] = {
    "adapter": "codex",
    "command": ("a",),
    "resume": ("b",),
    "home": edge.Home.PRIVATE,
    "writable": ("/tmp",),  # noqa: S108 - only a text here
    "network": False,
    "pass_env": ("A",),
    "connectors": ("tracker",),
    "hooks": False,
    "credentials": ("github.com",),
    "continues": True,
    "worktree": True,
    "gateway": Gateway(enabled=True),
    "title": "other",
    "goal": "g",
    "role": "coder",
    "mode": Mode.ASSISTED,
    "agent": "coder",
    "cwd": "/",
    "gates": (Gate(name="g", command=("x",)),),
    "evaluators": (Evaluator(name="e", model="openai:m"),),
    "qa": QaTerms(roles=()),
    "caps": Caps(turns=1),
    "budget": Budget(attempts=1),
    "rescue": (),
    "retry": (),
    "isolation": edge.Isolation.JAIL,
    "proof": ProofMode.REGRESSION,
    "require": Level.A3,
    "noop": NoopPolicy.ACCEPT,
    "claim_file": "x.json",
    "artifact_is_status": True,
    "approvals": ("git push",),
    "approval_within": Duration(60_000_000),
    "review_within": Duration(60_000_000),
    "done_when": "all is well",
    "host": "build1",
    "source": Source(remote="git@host:repo", commit="a" * 40),
    "labels": ("l",),
    "lane": "deploy",
    "priority": 1,
    "depends_on": ("tsk_1",),
    "wait_for": ("message:built",),
}


@pytest.mark.criterion("F15")
@each_row("name", Contract.__struct_fields__)
def test_no_field_can_change_without_the_digest(name):
    base = Contract(title="t")
    changed = msgspec.structs.replace(base, **{name: CHANGES[name]})
    assert contract_digest(changed) != contract_digest(base)


def test_a_contract_is_frozen():
    contract = Contract(title="t")
    with pytest.raises(AttributeError):
        contract.gates = ()  # type: ignore[misc]


@each_row("name", AgentDefinition.__struct_fields__)
def test_another_definition_is_another_agent(name):
    base, changed = Contract(title="t"), Contract(title="t", **{name: CHANGES[name]})
    assert base.definition() == AgentDefinition()
    assert base.definition().definition_digest() != changed.definition().definition_digest()


@each_row(
    ("fields", "message"),
    [
        ({"goal": "x" * (64 * 1024 + 1)}, "goal: has 65537 bytes; the limit is 65536"),
        ({"goal": "a\0"}, "goal: contains a NUL byte"),
        ({"command": ("x", "\ud800")}, r"command\[1\]: is not valid Unicode"),
        ({"command": ("x", "y" * 131_072)}, r"command\[1\]: has 131072 bytes"),
        ({"command": (" ",)}, r"command\[0\]: is empty"),
        ({"resume": ("",)}, r"resume\[0\]: is empty"),
        ({"role": "Coder"}, "role: "),
        ({"agent": "A"}, "agent: "),
        ({"adapter": ""}, "adapter: "),
        ({"credentials": ("https://github.com/",)}, r"credentials\[0\]: "),
        ({"credentials": ("github.com", "a b")}, r"credentials\[1\]: "),
        ({"mode": "autopilot"}, "mode: expected one of"),
        ({"isolation": "vm"}, "isolation: expected one of"),
        ({"home": "x"}, "home: expected one of"),
        ({"priority": 101}, "priority: expected a number from -100 to 100; got 101"),
        ({"priority": True}, "priority: "),
        ({"cwd": "a\0"}, "cwd: "),
        ({"claim_file": "x" * 4097}, "claim_file: has 4097 bytes"),
        ({"approvals": ("a\nb",)}, r"approvals\[0\]: "),
        ({"labels": ("A",)}, r"labels\[0\]: "),
        ({"depends_on": ("A",)}, r"depends_on\[0\]: "),
        ({"writable": ("",)}, r"writable\[0\]: is empty"),
        ({"gates": (Gate(command=("x",)),)}, r"gates\[0\].name: "),
        ({"gates": (Gate(name="a", command=("x",)),) * 2}, r'gates\[1\].name: "a" is there twice'),
        ({"evaluators": (Evaluator(name="a", model="openai:m"),) * 2}, r"evaluators\[1\].name: "),
    ],
)
def test_a_contract_made_in_python_is_checked_like_one_that_is_read(fields, message):
    with pytest.raises(InvalidInput, match=f"^{message}"):
        Contract(**{"title": "t", **fields})


# --- gates and judges

FILLED: dict[str, Any] = {
    "command": ("x",),
    "args": ("-q",),
    "report": "r.xml",
    "paths": ("p",),
    "path": "p",
    "schema": "s",
    "pointer": "/a",
    "equals": 1,
    "fresh": True,
    "only": ("a",),
    "never": ("b",),
    "branch": "b",
    "remote": "origin",
    "pushed": True,
    "url": "http://x",
    "status": 404,
    "contains": "ok",
    "data": "/held",
    "data_digest": "sha256:0",
    "python": ".venv/bin/python",
}


@each_row("kind", GateKind)
def test_a_gate_has_what_its_kind_needs_and_nothing_that_its_kind_ignores(kind):
    use = GATE_USES[kind]
    needed = {key: FILLED[key] for key in use.needs}
    assert Gate(kind=kind, **needed).kind is kind
    assert Gate(kind=kind, **needed, **{key: FILLED[key] for key in use.may}).kind is kind
    for key in use.needs:
        with pytest.raises(InvalidInput, match=f'{key}: a gate of kind "{kind}" needs it'):
            Gate(kind=kind, **{name: value for name, value in needed.items() if name != key})
    for key in set(FILLED) - {*use.needs, *use.may}:
        with pytest.raises(InvalidInput, match=f'{key}: a gate of kind "{kind}" does not use it'):
            Gate(kind=kind, **needed, **{key: FILLED[key]})


@each_row(
    ("fields", "message"),
    [
        ({"kind": "magic"}, "kind: expected one of"),
        ({"before": "never"}, "before: expected one of"),
        ({"tampering": "shrug"}, "tampering: expected one of"),
        ({"command": ("",)}, r"command\[0\]: is empty"),
        ({"kind": "http", "url": "x", "status": 99}, "status: expected a number from 100 to 599"),
        ({"kind": "http", "url": "x\0"}, "url: contains a NUL byte"),
        ({"kind": "json", "path": "x" * 4097}, "path: has 4097 bytes"),
        ({"protect": ("a\0",)}, r"protect\[0\]: contains a NUL byte"),
        ({"env": {"A": "\0"}}, "env.A: contains a NUL byte"),
        ({"env": {"A=B": ""}}, "env: .* is no name"),
        ({"timeout": 600}, "timeout: expected a Duration"),
        ({"timeout": Duration(0)}, "timeout: expected a duration"),
    ],
)
def test_a_gate_made_in_python_is_checked_like_one_that_is_read(fields, message):
    command = {} if "kind" in fields else {"command": ("x",)}
    with pytest.raises(InvalidInput, match=f"^{message}"):
        Gate(**{**command, **fields})


@each_row(
    ("fields", "message"),
    [
        ({"command": ("x", "\0")}, r"command\[1\]: contains a NUL byte"),
        ({"model": "\0"}, "model: contains a NUL byte"),
        ({"model": "openai:m", "band": 1.5}, "band: expected a number from 0"),
        ({"model": "openai:m", "band": float("nan")}, "band: "),
        ({"model": "openai:m", "timeout": 5}, "timeout: expected a Duration"),
    ],
)
def test_an_evaluator_made_in_python_is_checked_like_one_that_is_read(fields, message):
    with pytest.raises(InvalidInput, match=f"^{message}"):
        Evaluator(**fields)


def test_whose_work_is_reviewed_is_said_by_name():
    with pytest.raises(InvalidInput, match=r"^roles\[0\]: "):
        QaTerms(roles=("Coder",))
    with pytest.raises(InvalidInput, match=r"^agent: "):
        QaTerms(agent="A B")
    assert QaTerms(roles=()).roles == ()


def test_durations_may_be_written_as_text_in_python_too():
    text: Any = "1h30m"
    assert Gate(command=("x",), timeout=text).timeout == 5_400_000_000
    assert Evaluator(model="openai:m", timeout=text).timeout == 5_400_000_000
    caps = Caps(time=text, idle=text)
    assert (caps.time, caps.idle) == (5_400_000_000, 5_400_000_000)
    assert caps == Caps(time=Duration(5_400_000_000), idle=Duration(5_400_000_000))


def test_a_gate_is_careful_by_default():
    gate = Gate(command=("x",))
    assert (gate.required, gate.network, gate.tampering) == (True, False, "restore")


@pytest.mark.criterion("F07")
@given(threshold=SCORES, rescue=SCORES)
def test_a_rescue_never_needs_less_than_a_confirmation(threshold, rescue):
    if rescue < threshold:
        with pytest.raises(InvalidInput, match=r"rescue_threshold: .* is below threshold"):
            Evaluator(model="openai:m", threshold=threshold, rescue_threshold=rescue)
    else:
        judge = Evaluator(model="openai:m", threshold=threshold, rescue_threshold=rescue)
        assert judge.rescue_at == rescue
    assert Evaluator(model="openai:m", threshold=threshold).rescue_at == threshold


@pytest.mark.criterion("F07")
def test_the_rescue_threshold_of_the_file_is_held_too():
    error = refused('[evaluators.e]\nmodel = "openai:m"\nthreshold = 0.8\nrescue_threshold = 0.79')
    assert "evaluators.e.rescue_threshold: 0.79 is below threshold 0.8" in error.message


@each_row("score", [0, 0.0, -0.1, 1.01, float("nan"), float("inf"), True, "0.7"])
@each_row("name", ["threshold", "rescue_threshold"])
def test_a_threshold_that_lets_everything_or_nothing_pass_is_refused(name, score):
    with pytest.raises(InvalidInput, match=f"^{name}: "):
        Evaluator(model="openai:m", **{name: score})


def test_the_default_threshold_is_070_and_a_judge_is_blind_and_binding():
    judge = Evaluator(model="openai:m")
    assert (judge.threshold, judge.band, judge.blind, judge.shadow) == (0.70, 0.0, True, False)


@each_row(
    ("given", "said"),
    [
        ({}, "one of command, model and python"),
        ({"model": "openai:m", "command": ("x",)}, "one of command, model and python"),
        ({"python": "a:b", "command": ("x",)}, "one of command, model and python"),
        ({"model": "gpt"}, "model: expected anthropic:NAME, openai:NAME; got 'gpt'"),
        ({"model": "gemini:x"}, "model: expected anthropic:NAME, openai:NAME"),
        ({"model": "openai: "}, "model: expected"),
        ({"model": "openai:m", "base_url": "ftp://x"}, "base_url: expected an address"),
        ({"command": ("x",), "base_url": "http://x"}, "base_url: only a model uses it"),
        ({"command": ("x",), "key_env": "KEY"}, "key_env: only a model uses it"),
        ({"python": "judges"}, "python: expected MODULE:FUNCTION"),
        ({"command": ("x",), "pass_env": ("A B",)}, r"pass_env\[0\]"),
        ({"command": ("x",), "cost_usd": 0}, "cost_usd: expected a number from 0.01"),
        ({"command": ("x",), "tokens": 0}, "tokens: expected"),
        ({"command": ("x",), "uncertain": "pass"}, "uncertain: "),
        ({"command": ("x",), "dimensions": ("A B",)}, r"dimensions\[0\]"),
    ],
)
def test_an_evaluator_that_could_not_be_asked_is_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        Evaluator(name="e", **given)


@pytest.mark.criterion("F16", "O09")
def test_nobody_is_asked_about_their_own_work():
    judge = Evaluator(name="e", command=("claude", "-p"))
    with pytest.raises(InvalidInput, match=r'evaluators\[0\]: "e" is the agent itself'):
        Contract(title="t", command=("claude", "-p"), evaluators=(judge,))
    other = Contract(title="t", command=("claude", "-p", "x"), evaluators=(judge,))
    assert other.evaluators == (judge,)
    with pytest.raises(InvalidInput, match='a gate is called "e" too'):
        Contract(title="t", gates=(Gate(name="e", command=("x",)),), evaluators=(judge,))


@pytest.mark.criterion("J03", "O09")
def test_nobody_reviews_their_own_work_under_another_name():
    text = '[agents.a]\ncommand = ["x"]\n[agents.b]\ncommand = ["x"]\n[qa]\nagent = "b"\n'
    file = read_toml(text, "x")
    with pytest.raises(InvalidInput, match=r'qa\.agent: "b" is the agent itself'):
        file.contract(title="t", agent="a", role="coder")
    assert file.contract(title="t", agent="a", role="ops").qa.agent == "b"
    other = read_toml(text.replace('["x"]', '["y"]', 1), "x")
    terms = other.contract(title="t", agent="a", role="coder")
    assert terms.qa.definition == other.agents["b"]


@pytest.mark.criterion("J03", "O09")
def test_an_evaluator_that_reviews_is_neither_the_author_nor_a_judge_before():
    text = '[agents.a]\ncommand = ["x"]\n[evaluators.e]\ncommand = ["y"]\n[qa]\nagent = "e"\n'
    file = read_toml(text, "x")
    coder = {"title": "t", "agent": "a", "role": "coder"}
    with pytest.raises(InvalidInput, match=r'qa\.agent: "e" has judged the work already'):
        file.contract(**coder, evaluators=("e",))
    assert file.contract(**coder).qa.evaluator == file.evaluators["e"]
    assert file.contract(title="t", agent="a", role="ops", evaluators=("e",)).evaluators
    own = read_toml(text.replace('["y"]', '["x"]'), "x")
    with pytest.raises(InvalidInput, match=r'qa\.agent: "e" is the agent itself'):
        own.contract(**coder)


# --- policies


@pytest.mark.criterion("D01")
def test_the_three_modes_exist_per_task_and_the_default_is_autonomous():
    assert set(Mode) == {"interactive", "assisted", "autonomous"}
    file = read_toml(
        '[defaults]\nmode = "assisted"\n[tasks.a]\nmode = "interactive"\n[tasks.b]', "x"
    )
    assert file.contract("a").mode is Mode.INTERACTIVE
    assert file.contract("b").mode is Mode.ASSISTED
    assert file.contract("a", mode="autonomous").mode is Mode.AUTONOMOUS
    assert Contract(title="t").mode is Mode.AUTONOMOUS


@pytest.mark.criterion("I19", "E03")
@each_row("name", Budget.__struct_fields__)
@each_row("count", [-1, 101, "unlimited", 10**9, float("inf"), 1.5, True, None])
def test_no_budget_is_unlimited(name, count):
    with pytest.raises(InvalidInput, match=f"^{name}: "):
        Budget(**{name: count})
    if count is not None:
        with pytest.raises(InvalidInput, match=f"budget.{name}: "):
            make_contract(ConfigFile(), title="t", budget={name: count})


@pytest.mark.criterion("I19")
@each_row("attempts", [0, -1, 101, "unlimited"])
def test_a_task_has_at_least_one_attempt_and_no_endless_ones(attempts):
    with pytest.raises(InvalidInput, match=r"^attempts: "):
        Budget(attempts=attempts)
    with pytest.raises(InvalidInput, match=r"^options: max_attempts: "):
        make_contract(ConfigFile(), title="t", max_attempts=attempts)
    assert "defaults.max_attempts" in refused(f"[defaults]\nmax_attempts = {attempts!r}").message


@pytest.mark.criterion("I19")
@given(st.integers(1, 100))
def test_the_budget_can_be_set_per_task(attempts):
    file = read_toml(f"[tasks.a]\nmax_attempts = {attempts}", "x")
    assert file.contract("a").budget == Budget(attempts=attempts)
    assert file.contract("a", max_attempts=1).budget.attempts == 1


@pytest.mark.criterion("I19")
@each_row("name", Caps.__struct_fields__)
@each_row("value", [0, -1, "unlimited", float("inf"), float("nan"), 10**16, "", False])
def test_no_cap_is_unlimited(name, value):
    with pytest.raises(InvalidInput, match=f"^options: caps.{name}: "):
        make_contract(ConfigFile(), title="t", caps={name: value})
    with pytest.raises(InvalidInput, match=f"^{name}: "):
        Caps(**{name: value})


@pytest.mark.criterion("F36")
def test_rescue_can_be_switched_off_for_all_and_on_for_one():
    text = '[defaults]\nrescue = []\n[tasks.off]\n[tasks.on]\nrescue = ["unclaimed"]'
    file = read_toml(text, "x")
    assert not any(file.contract("off").may_rescue(detail) for detail in ExitDetail)
    on = file.contract("on")
    assert [detail for detail in ExitDetail if on.may_rescue(detail)] == [ExitDetail.UNCLAIMED]
    assert not file.contract("on", rescue=[]).rescue


@pytest.mark.criterion("F36")
def test_the_default_rescues_what_ended_without_a_crash_and_nothing_else():
    contract = Contract(title="t")
    assert {detail for detail in ExitDetail if contract.may_rescue(detail)} == RESCUABLE


@each_row("detail", sorted(set(ExitDetail) - RESCUABLE))
def test_no_policy_rescues_a_crash(detail):
    with pytest.raises(InvalidInput, match=r"^rescue\[0\]: expected one of"):
        Contract(title="t", rescue=(detail,))
    assert (
        "defaults.rescue[0]: expected one of agent_error"
        in refused(f'[defaults]\nrescue = ["{detail}"]').message
    )


FOR_PEOPLE = (ExitReason.BLOCKED, ExitReason.USER_CANCELLED)


@pytest.mark.criterion("B21")
@each_row(
    "name",
    [*FOR_PEOPLE, *(detail for detail in ExitDetail if PARENT[detail] in FOR_PEOPLE), "never"],
)
def test_what_waits_for_a_person_can_not_be_retried_by_policy(name):
    with pytest.raises(InvalidInput, match=r"^retry\[0\]: expected one of") as caught:
        Contract(title="t", retry=(str(name),))
    assert str(name) not in caught.value.allowed


@pytest.mark.criterion("B21")
@given(st.sets(st.sampled_from(sorted(RETRY_WORDS))))
def test_the_retry_policy_is_selectable_per_reason_and_detail(words):
    contract = Contract(title="t", retry=tuple(words))
    for detail in ExitDetail:
        by_name = detail in words
        by_reason = PARENT[detail] in words and detail not in NO_BLIND_RETRY
        assert contract.may_retry(detail) == (by_name or by_reason)
        assert not (contract.may_retry(detail) and PARENT[detail] in FOR_PEOPLE)


@pytest.mark.criterion("B21")
def test_by_default_everything_is_retried_but_what_no_retry_would_cure():
    contract = Contract(title="t")
    never = {detail for detail in ExitDetail if PARENT[detail] in FOR_PEOPLE} | NO_BLIND_RETRY
    never |= {ExitDetail.SUPERVISOR_RESTARTED}  # always tried again: no policy decides about it
    assert {detail for detail in ExitDetail if not contract.may_retry(detail)} == never
