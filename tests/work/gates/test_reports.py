"""Reports of runners: real ones, lying ones, hostile ones, and what they mean."""

from __future__ import annotations

import hashlib
from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.model import FindingOutcome
from truegreen.work.gates import cases as rules
from truegreen.work.gates import reports
from truegreen.work.gates.reports import (
    Case,
    compact_ids,
    expanded_ids,
    judge_cases,
    read_junit,
    read_tap,
)

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED

PYTEST = b"""<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">
<testsuite name="pytest" errors="3" failures="1" skipped="2" tests="9" time="0.101">
<testcase classname="" name="tests.test_a" file="tests/test_a.py" time="0.000">
  <error message="collection failure">ImportError while importing</error></testcase>
<testcase classname="tests.test_b" name="test_t" file="tests/test_b.py" line="5" time="0.001">
  <failure message="assert 0">bad = None</failure></testcase>
<testcase classname="tests.test_b" name="test_t" file="tests/test_b.py" line="5" time="0.000">
  <error message="failed on teardown"/></testcase>
<testcase classname="tests.test_b" name="test_u" file="tests/test_b.py" line="6" time="0.001">
  <error message="failed on teardown"/></testcase>
<testcase classname="tests.test_b.TestX" name="test_xf" file="tests/test_b.py" time="0.001">
  <skipped type="pytest.xfail" message="" /></testcase>
<testcase classname="tests.test_b.TestX" name="test_s" file="tests/test_b.py" time="0.000">
  <skipped type="pytest.skip" message="unconditional skip">skip</skipped></testcase>
<testcase classname="tests.test_b.TestX" name="test_p[x.y]" file="tests/test_b.py" time="0.001" />
<testcase classname="tests.test_b.TestX" name="test_xp" file="tests/test_b.py" time="1e400" />
<testcase classname="tests.base.TestY" name="test_z" file="tests/other.py" time="-1" />
</testsuite></testsuites>"""

SUREFIRE = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:noNamespaceSchemaLocation="https://maven.apache.org/surefire/surefire-test-report-3.0.xsd"
  version="3.0" name="a.CalcTest" time="0.031" tests="3" errors="1" skipped="0" failures="1">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="ok" classname="a.CalcTest" time="1,042.5"/>
  <testcase name="bad" classname="a.CalcTest" time="0.022">
    <failure type="AssertionFailedError"><![CDATA[expected: <1> but was: <2>
	at a.CalcTest.bad(CalcTest.java:8)]]></failure>
    <rerunFailure message="again" type="x"><stackTrace><![CDATA[<1>]]></stackTrace></rerunFailure>
  </testcase>
  <testcase name="off" classname="a.CalcTest" time="0.0"><skipped message="later"/></testcase>
  <testcase name="each(int)[1]" classname="a.CalcTest" time="0.046"/>
  <testcase name="each(int)[2]" classname="a.CalcTest" time="0.002"/>
  <testcase name="crash" classname="a.CalcTest" time="0.002">
    <error message="boom" type="java.lang.IllegalStateException"/>
    <rerunError message="boom" type="java.lang.IllegalStateException"/>
  </testcase>
  <testcase name="flaky" classname="a.CalcTest" time="0.006">
    <flakyFailure message="first" type="x"><stackTrace>at</stackTrace></flakyFailure>
    <system-out><![CDATA[<failure/>]]></system-out>
  </testcase>
</testsuite>"""

NODE = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites>
	<testcase name="plus" time="0.002883" classname="test"/>
	<testcase name="later" time="0.001824" classname="test" failure="1 == 2">
		<skipped type="todo" message="true"/>
		<failure type="testCodeFailure" message="1 == 2">[Error]</failure>
	</testcase>
	<testsuite name="A" errors="0" tests="3" failures="1" skipped="0" hostname="vm">
		<testcase name="x" time="0.000349" classname="test"/>
		<testcase name="y" time="0.002386" classname="test" failure="1 == 2">
			<failure type="testCodeFailure" message="1 == 2">Error</failure>
		</testcase>
		<testsuite name="B" errors="0" tests="1" failures="0" skipped="0" hostname="vm">
			<testcase name="x" time="0.000475" classname="test"/>
		</testsuite>
	</testsuite>
	<testcase name="plus" time="0.001378" classname="test"/>
	<testcase name="/copy/c.test.mjs" time="0.1" classname="test" failure="test failed">
		<failure type="testCodeFailure" message="test failed"/>
	</testcase>
	<!-- tests 10 -->
</testsuites>"""

CARGO = b"""<?xml version="1.0" encoding="UTF-8"?><testsuites><testsuite name="test" package="test"\
 id="0" errors="0" failures="0" tests="2" skipped="1" ><testcase classname="tests" name="it_works"\
 time="0"/><system-out/><system-err/></testsuite></testsuites>
<?xml version="1.0" encoding="UTF-8"?><testsuites><testsuite name="test" package="test" id="0" \
errors="0" failures="0" tests="1" skipped="0" ><testcase classname="integration" name="outer" \
time="0"/><system-out/><system-err/></testsuite></testsuites>
<?xml version="1.0" encoding="UTF-8"?><testsuites><testsuite name="test" package="test" id="0" \
errors="0" failures="0" tests="0" skipped="0" ><system-out/><system-err/></testsuite></testsuites>
"""

NODE_TAP = b"""TAP version 13
# ok 1 - printed by a test
# Subtest: plus
ok 1 - plus
  ---
  duration_ms: 2.5
  ok 2 - what a test says about itself
  ...
# Subtest: later
not ok 2 - later # TODO
# Subtest: A
    # Subtest: x
    ok 1 - x # SKIP not here
    # Subtest: y
    not ok 2 - y
      ---
      error: '1 == 2'
      ...
    # Subtest: B
        ok 1 - x
        1..1
    ok 3 - B
      ---
      duration_ms: 9
      ...
    1..3
not ok 3 - A
  ---
  error: '1 subtest failed'
  ...
# Subtest: kid \\# one
ok 4 - kid \\# one
# the number is wrong, as node writes it after a file that does not load
not ok 2 - /copy/c.test.mjs
1..5
# pass 6
"""


def usable(found: list[Case] | str) -> list[Case]:
    assert not isinstance(found, str), found
    return found


def outcomes(found: list[Case] | str) -> dict[str, str]:
    return {case.id: case.outcome for case in usable(found)}


def suite(inside: str, **says: object) -> bytes:
    said = "".join(f' {name}="{value}"' for name, value in says.items())
    return f"<testsuite{said}>{inside}</testsuite>".encode()


# --- JUnit


def test_pytest_cases_have_their_node_ids() -> None:
    assert outcomes(read_junit(PYTEST)) == {
        "tests/test_a.py": "error",
        "tests/test_b.py::test_t": "failed",
        "tests/test_b.py::test_u": "error",
        "tests/test_b.py::TestX::test_xf": "xfailed",
        "tests/test_b.py::TestX::test_s": "skipped",
        "tests/test_b.py::TestX::test_p[x.y]": "passed",
        "tests/test_b.py::TestX::test_xp": "passed",
        # Inherited from a class of another file: pytest names the file of the class.
        "tests.base.TestY::test_z": "passed",
    }


def test_surefire_reruns_are_neither_hidden_nor_counted_twice() -> None:
    found = read_junit(SUREFIRE)
    assert outcomes(found) == {
        "a.CalcTest::ok": "passed",
        "a.CalcTest::bad": "failed",
        "a.CalcTest::off": "skipped",
        "a.CalcTest::each(int)[1]": "passed",
        "a.CalcTest::each(int)[2]": "passed",
        "a.CalcTest::crash": "error",
        "a.CalcTest::flaky": "flaky",
    }
    by_id = {case.id: case for case in usable(found)}
    assert by_id["a.CalcTest::ok"].seconds == 1042.5
    assert by_id["a.CalcTest::bad"].message.startswith("expected: <1> but was: <2> at a.CalcTest")


def test_cargo_leaves_out_what_is_ignored_and_writes_a_document_for_each_binary() -> None:
    assert outcomes(read_junit(CARGO)) == {
        "tests::it_works": "passed",
        "integration::outer": "passed",
    }
    assert "no XML" in str(read_junit(CARGO[:-20]))
    assert "no XML" in str(read_junit(CARGO.replace(b"</testsuites>", b"", 1)))


def test_nested_suites_are_part_of_the_id_and_the_place_of_the_copy_is_not() -> None:
    assert outcomes(read_junit(NODE, ("/copy",))) == {
        "plus": "passed",
        "plus [2]": "passed",
        "later": "xfailed",
        "A::x": "passed",
        "A::y": "failed",
        "A::B::x": "passed",
        "c.test.mjs": "failed",
    }


def test_no_time_is_endless_or_negative() -> None:
    found = usable(read_junit(PYTEST))
    assert all(0 <= case.seconds < 1e8 for case in found)


def test_of_several_cases_with_one_id_the_worst_wins() -> None:
    bad = '<testcase name="a"/><testcase name="a"><failure/></testcase><testcase name="a"/>'
    assert outcomes(read_junit(suite(bad))) == {"a": "failed"}
    assert outcomes(read_junit(suite('<testcase name="a"/><testcase name="a"/>'))) == {
        "a": "passed",
        "a [2]": "passed",
    }


def test_a_failure_of_the_whole_suite_is_an_error() -> None:
    found = read_junit(suite('<error message="no set-up"/><testcase name="a"/>', name="s"))
    assert outcomes(found) == {"s::(the suite)": "error", "s::a": "passed"}


@each_row(
    ("attributes", "outcome"),
    [
        ('status="notrun"', "skipped"),
        ('status="run" result="suppressed"', "skipped"),
        ('status="fail"', "failed"),
        ('status="run" result="completed"', "passed"),
    ],
)
def test_what_only_an_attribute_says_counts(attributes: str, outcome: str) -> None:
    assert outcomes(read_junit(suite(f'<testcase name="a" {attributes}/>'))) == {"a": outcome}


@pytest.mark.criterion("E12")
@each_row(
    ("says", "why"),
    [
        ({"tests": 5}, "says 5 tests and shows 1"),
        ({"tests": 5, "skipped": 3}, "says 2 tests and shows 1"),
        ({"tests": 1, "skipped": 1}, "says 1 skipped tests and shows 0"),
        ({"failures": 1}, "says 1 failures and shows 0"),
        ({"errors": 1}, "says 1 failures and shows 0"),
        ({"skipped": 1}, "says 1 skipped tests and shows 0"),
        ({"tests": "9" * 5000}, "tests is no number"),
        ({"tests": "-1"}, "tests is no number"),
        ({"tests": "\u0663"}, "tests is no number"),
    ],
)
def test_a_report_at_odds_with_itself_is_no_report(says: dict[str, object], why: str) -> None:
    found = read_junit(suite('<testcase name="a"/>', **says))
    assert isinstance(found, str)
    assert why in found


BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">
<!ENTITY c SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&b;&c;"/></testsuite>"""


@each_row(
    ("data", "why"),
    [
        (BOMB, "document type"),
        (BOMB.decode().encode("utf-16"), "document type"),
        (b"<!DOCTYPE testsuite><testsuite/>", "document type"),
        (b"<testsuite>" * 100, "nested too deep"),
        (b"<testsuite><testcase name='a'><testcase name='b'/></testcase></testsuite>", "inside of"),
        (b"<html/>", "starts with <html>"),
        (b"<testcase name='a'/>", "starts with <testcase>"),
        (b"", "no XML"),
        (b"\0", "no XML"),
        (b"<testsuite><testcase name='\xff'/></testsuite>", "no XML"),
        (b"<testsuite><testcase name='a\0'/></testsuite>", "no XML"),
        (SUREFIRE[:-5], "no XML"),
        (SUREFIRE[:700], "no XML"),
        (SUREFIRE + b"<testsuite/>", "no XML"),
        (b"<testsuite>&nosuch;</testsuite>", "no XML"),
    ],
)
def test_hostile_xml_gives_a_sentence(data: bytes, why: str) -> None:
    found = read_junit(data)
    assert isinstance(found, str)
    assert why in found
    assert len(found) < 400


def test_large_xml_gives_a_sentence() -> None:
    attributes = b"".join(b'a%d="" ' % n for n in range(600_000))
    for data, why in (
        (b"x" * (reports.REPORT_BYTES + 1), "too large"),
        (b"<testsuite " + attributes + b"/>", "a tag of more"),
        (b'<testsuite><testcase name="' + b"n" * 9_000_000 + b'"/></testsuite>', "a tag of more"),
    ):
        assert why in str(read_junit(data))


def test_the_number_of_elements_and_cases_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "CASES", 10)
    assert "too many" in str(read_junit(suite('<testcase name="a"/>' * 20)))
    assert "too many" in str(read_tap(b"ok\n" * 20 + b"1..20\n"))
    monkeypatch.setattr(reports, "_ELEMENTS", 5)
    assert "too many" in str(read_junit(suite("<x/>" * 9)))


def test_much_text_is_no_large_tag() -> None:
    for text in (b"x" * 9_000_000, b"<![CDATA[" + b"x" * 9_000_000 + b"]]>", b"x\n" * 4_000_000):
        data = b'<testsuite><testcase name="a"/><system-out>' + text + b"</system-out></testsuite>"
        assert outcomes(read_junit(data)) == {"a": "passed"}


def test_endless_names_are_cut_and_still_differ() -> None:
    long = "n" * 100_000
    found = read_junit(suite(f'<testcase name="{long}a"/><testcase name="{long}b"/>'))
    assert len(outcomes(found)) == 2
    assert all(len(name) <= 400 for name in outcomes(found))


# --- TAP


def test_tap_of_node_is_read_with_its_subtests() -> None:
    found = read_tap(NODE_TAP, ("/copy",))
    assert outcomes(found) == {
        "plus": "passed",
        "later": "xfailed",
        "A::x": "skipped",
        "A::y": "failed",
        "A::B::x": "passed",
        "kid # one": "passed",
        "c.test.mjs": "failed",
    }
    by_id = {case.id: case for case in usable(found)}
    assert by_id["plus"].seconds == 0.0025
    assert by_id["A::y"].message == "'1 == 2'"
    assert by_id["A::B::x"].message == ""


@each_row(
    ("text", "expected"),
    [
        ("1..2\nok\nnot ok\n", {"test 1": "passed", "test 2": "failed"}),
        ("ok 1 name\r\nok 2 - - dash\r\n1..2\r\n", {"name": "passed", "- dash": "passed"}),
        ("1..1\nok 1 - a # skip\n", {"a": "skipped"}),
        ("1..1\nok 1 - a # Skipped: why\n", {"a": "skipped"}),
        ("1..1\nok 1 - a \\# skip\n", {"a # skip": "passed"}),
        ("1..1\nok 1 - a # todo\n", {"a": "xfailed"}),
        ("1..1\nok 1 - 42\n", {"42": "passed"}),
        ("okay then\nnot okay\nok: fine\n1..1\nok 1 - a\n", {"a": "passed"}),
        ("1..0 # SKIP no database\n", {}),
        ("\ufeff1..1\nok 1 - a\n", {"a": "passed"}),
        ("1..1\n    ok 1 - in\n    1..1\nnot ok 1 - out\n", {"out::in": "passed", "out": "failed"}),
        ("1..1\n    not ok 1 - in\n    1..1\nok 1 - out # todo\n", {"out::in": "xfailed"}),
    ],
)
def test_what_tap_says(text: str, expected: dict[str, str]) -> None:
    assert outcomes(read_tap(text.encode())) == expected


@each_row(
    ("text", "why"),
    [
        ("", "no plan"),
        ("ok 1 - a\n", "no plan"),
        ("1..2\nok 1 - a\n", "planned 2 tests and shows 1"),
        ("1..1\nok 1 - a\nok 2 - b\n", "planned 1 tests and shows 2"),
        ("1..1\n1..1\nok 1\n", "two plans"),
        ("1..1\nok 1\nBail out! no database\n", "bailed out: no database"),
        ("1..1\n    ok 1 - in\nok 1 - out\n", "a subtest has no plan"),
        ("1..1\n    1..2\n    ok 1 - in\nok 1 - out\n", "a subtest planned 2"),
        ("1..1\nok 1 - a\n    ok 1 - in\n    1..1\n", "without its test"),
        ("1..1\nok 1 - a\n  ---\n  ok\n", "inside of a block"),
        ("1..1\nok 1 - a\n  ---\n...\n", "inside of a block"),
        ("1..99999999999999999999\nok 1 - a\n", "no plan"),
        ("".join(" " * n + "1..1\n" for n in range(100)), "nested too deep"),
    ],
)
def test_tap_that_is_cut_off_or_at_odds_with_itself_is_no_report(text: str, why: str) -> None:
    found = read_tap(text.encode())
    assert isinstance(found, str)
    assert why in found


def test_too_much_tap_is_no_report() -> None:
    assert "too large" in str(read_tap(b"x" * (reports.REPORT_BYTES + 1)))


# --- both, against anybody

_SNIPPETS = st.sampled_from(
    [
        *("<testsuite>", "</testsuite>", "<testsuites>", "<testcase name='a'>", "</testcase>"),
        *("<testcase name='b'/>", "<failure/>", "<skipped>", "</skipped>", "<![CDATA[", "]]>"),
        *("<!DOCTYPE a>", "<!ENTITY", "&amp;", "&#0;", "tests='9'", "<!--", "-->", "<?x?>"),
        *("ok", "not ok", " 1", "\n", "    ", "# SKIP", "# todo", "1..1", "1..2", "  ---", "  ..."),
        *("Bail out!", "\\#", "-", "\0", "\u202e", "\x1b[31m", "TAP version 14"),
    ]
)
_HOSTILE = st.one_of(
    st.binary(max_size=300),
    st.lists(_SNIPPETS | st.text(max_size=5), max_size=40).map(lambda p: "".join(p).encode()),
    st.tuples(st.sampled_from([PYTEST, SUREFIRE, NODE, NODE_TAP]), st.integers(0, 2000)).map(
        lambda cut: cut[0][: cut[1]]
    ),
)


@given(data=_HOSTILE)
@settings(max_examples=300, deadline=None)
@example(data=NODE_TAP)
def test_any_bytes_give_cases_or_a_sentence(data: bytes) -> None:
    for read in (read_junit, read_tap):
        found = read(data)
        if isinstance(found, str):
            assert found
            assert len(found) < 500
            assert "\n" not in found
            continue
        assert len({case.id for case in found}) == len(found)
        assert all(case.outcome in rules._OUTCOMES and len(case.id) < 420 for case in found)
        # Whatever was read can be judged and kept.
        msgspec.json.encode(judge_cases(found, None, 0).evidence)


@given(
    kind=st.sampled_from([(PYTEST, read_junit), (SUREFIRE, read_junit), (NODE_TAP, read_tap)]),
    cut=st.integers(0, 3000),
)
@settings(max_examples=100, deadline=None)
def test_a_report_that_was_cut_off_is_never_a_pass(kind, cut: int) -> None:
    whole, read = kind
    found = read(whole[: min(cut, len(whole.rstrip()) - 20)])
    assert isinstance(found, str) or judge_cases(found, None, 0).outcome is not PASSED


# --- what cases mean


def case(name: str, outcome: str = "passed") -> Case:
    return Case(name, outcome)


PINNED = {"a": "passed", "b": "failed", "s": "skipped", "x": "xfailed"}
WHOLE = [case("a"), case("b"), case("s", "skipped"), case("x", "xfailed")]


@pytest.mark.criterion("E11")
def test_pinned_tests_that_pass_are_green_and_counted() -> None:
    answer = judge_cases(WHOLE, PINNED, 0)
    assert answer.outcome is PASSED
    assert answer.counts == {"passed": 2, "failed": 0, "skipped": 1, "xfailed": 1}
    assert answer.reason == "2 passed, 1 skipped, 1 xfailed"


@pytest.mark.criterion("E08")
@each_row(
    ("change", "words"),
    [
        ({"a": "skipped"}, "put aside: a (skipped)"),
        ({"b": "skipped"}, "put aside: b (skipped)"),
        ({"a": "xfailed"}, "put aside: a (xfailed)"),
        ({"a": None}, "did not run now: a"),
        ({"s": None}, "did not run now: s"),
        ({"a": "failed"}, "1 failed of 2"),
        ({"a": "error"}, "1 failed of 2"),
        ({"a": "flaky"}, "1 flaky"),
    ],
)
def test_a_pinned_test_that_does_not_plainly_pass_is_red(change, words: str) -> None:
    left = {each.id: each.outcome for each in WHOLE} | change
    found = [case(name, outcome) for name, outcome in left.items() if outcome]
    answer = judge_cases(found, PINNED, 0)
    assert answer.outcome is FAILED
    assert words in answer.reason


def test_failures_are_red_though_the_command_ended_with_0() -> None:
    answer = judge_cases([case("a", "failed")], {"a": "passed"}, 0)
    assert answer.outcome is FAILED
    assert "yet the command ended with exit 0" in answer.reason


def test_an_exit_code_without_failures_is_red() -> None:
    answer = judge_cases([case("a")], {"a": "passed"}, 3)
    assert answer.outcome is FAILED
    assert "exit 3, though the report says 1 passed" in answer.reason


@pytest.mark.criterion("E12")
@each_row("pinned", [None, {}])
def test_zero_tests_are_red(pinned) -> None:
    for found in ([], [case("s", "skipped")], [case("x", "xfailed")]):
        answer = judge_cases(found, pinned, 0)
        assert answer.outcome is FAILED
        assert "zero tests ran" in answer.reason


def test_tests_that_the_agent_added_are_told_and_never_counted() -> None:
    answer = judge_cases([case("a"), case("new"), case("bad", "failed")], {"a": "passed"}, 0)
    assert answer.outcome is PASSED
    assert answer.counts["passed"] == 1
    assert answer.evidence["added"] == {"passed": 1, "failed": 1}
    alone = judge_cases([case("new")], {}, 0)
    assert alone.outcome is FAILED
    assert alone.reason == "zero tests ran (1 added by the agent)"
    assert "1 that the agent added failed: bad" in (
        judge_cases([case("a"), case("bad", "failed")], {"a": "passed"}, 1).reason
    )


def test_tests_of_a_file_that_could_not_be_listed_before_count() -> None:
    pinned = {"tests/test_n.py": "error", "tests/test_o.py::test_o": "passed"}
    old, new = case("tests/test_o.py::test_o"), case("tests/test_n.py::test_n")
    added = case("tests/test_mine.py::test_m")
    answer = judge_cases([old, new, added], pinned, 0, unlisted={"tests/test_n.py"})
    assert answer.outcome is PASSED
    assert answer.counts["passed"] == 2
    for left in ([old], [old, added], [old, new._replace(outcome="skipped")]):
        red = judge_cases(left, pinned, 0, unlisted={"tests/test_n.py"})
        assert red.outcome is FAILED
        assert "did not run now: tests/test_n.py" in red.reason
    assert judge_cases([old, new], pinned, 0).outcome is FAILED


def test_a_report_without_files_lets_new_tests_stand_for_a_file_that_could_not_be_listed() -> None:
    pinned = {"c.test.mjs": "failed"}
    answer = judge_cases([case("works")], pinned, 0, unlisted={"c.test.mjs"})
    assert answer.outcome is PASSED


# --- how each pinned test turned


@each_row(
    ("before", "now", "transition"),
    [
        ("failed", "passed", "fail_to_pass"),
        ("error", "passed", "fail_to_pass"),
        ("passed", "passed", "pass_to_pass"),
        ("passed", "failed", "pass_to_fail"),
        ("passed", "error", "pass_to_fail"),
        ("passed", "flaky", "pass_to_fail"),
        ("passed", "skipped", "pass_to_fail"),
        ("passed", None, "pass_to_fail"),
        ("failed", "failed", "fail_to_fail"),
        ("failed", "skipped", "fail_to_fail"),
        ("failed", None, "fail_to_fail"),
        ("flaky", "failed", "fail_to_fail"),
        ("flaky", "passed", None),
        ("skipped", "passed", None),
        ("xfailed", "passed", None),
        ("skipped", None, None),
        (None, "passed", None),
    ],
)
def test_transitions_are_counted_per_pinned_test(
    before: str | None, now: str | None, transition: str | None
) -> None:
    pinned = {"always": "passed"} | ({"t": before} if before else {})
    found = [case("always"), *([case("t", now)] if now else [])]
    told = judge_cases(found, pinned, 0).evidence
    expected = Counter(["pass_to_pass", *([transition] if transition else [])])
    assert told["transitions"] == dict(expected)
    assert told.get("fail_to_pass", []) == (["t"] if transition == "fail_to_pass" else [])


def test_transitions_need_a_list_from_before_the_agent() -> None:
    assert "transitions" not in judge_cases([case("a")], None, 0).evidence


@each_row(
    ("pinned", "transition"),
    [
        ({"tests/test_n.py": "error"}, {"fail_to_pass": 1}),
        ({}, {"fail_to_pass": 1}),
        ({"tests/test_n.py": "skipped"}, None),
    ],
    ids=["could not be loaded", "behind a conftest that could not be loaded", "skipped"],
)
def test_tests_of_a_file_that_could_not_be_loaded_count_as_failed_before(
    pinned: dict[str, str], transition: dict[str, int] | None
) -> None:
    new = case("tests/test_n.py::test_n")
    answer = judge_cases([new], pinned, 0, unlisted={"tests/test_n.py"})
    assert answer.evidence.get("transitions") == transition


def test_transitions_are_counted_where_only_hashes_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "PLAIN_BYTES", 1)
    monkeypatch.setattr(rules, "PACKED_BYTES", 400)
    names = (hashlib.sha256(bytes([n])).hexdigest() for n in range(40))
    before = {f"tests/test_x.py::test_{name}": "failed" for name in names}
    kept = compact_ids(before)
    assert "hashed" in kept
    answer = judge_cases([case(name) for name in before], expanded_ids(kept), 0)
    assert answer.evidence["transitions"] == {"fail_to_pass": 40}


def test_the_list_of_fixed_tests_is_bounded() -> None:
    pinned = {f"t{n}": "failed" for n in range(80)}
    told = judge_cases([case(name) for name in pinned], pinned, 0).evidence
    assert told["transitions"] == {"fail_to_pass": 80}
    assert len(told["fail_to_pass"]) == 50


_IDS = st.dictionaries(st.text("abc:/", min_size=1, max_size=4), st.sampled_from(rules._OUTCOMES))


@given(found=_IDS, pinned=st.none() | _IDS, code=st.integers(0, 2))
@settings(deadline=None)
def test_green_means_that_every_pinned_test_that_ran_before_passed_now(found, pinned, code) -> None:
    answer = judge_cases([case(*each) for each in found.items()], pinned, code)
    if answer.outcome is not PASSED:
        return
    assert code == 0
    counted = found if pinned is None else {n: o for n, o in found.items() if n in pinned}
    assert "passed" in counted.values()
    assert not {"failed", "error", "flaky"} & set(counted.values())
    for name, before in (pinned or {}).items():
        assert found[name] == "passed" or before in ("skipped", "xfailed")


# --- how a record keeps them


@given(ids=st.dictionaries(st.text(max_size=30), st.sampled_from(rules._OUTCOMES)))
@settings(deadline=None)
def test_kept_ids_come_back(ids: dict[str, str]) -> None:
    assert expanded_ids(compact_ids(ids)) == ids
    on_paper = msgspec.json.decode(msgspec.json.encode(compact_ids(ids)))
    assert expanded_ids(on_paper) == ids


def test_ten_thousand_ids_fit_a_record_and_pin() -> None:
    plain = {f"tests/unit/test_module_{n % 97}.py::TestThing::test_case[{n}]": "passed"
             for n in range(10_000)}  # fmt: skip
    noise = Random(7)  # noqa: S311 - incompressible is enough
    long = {noise.randbytes(190).hex(): "passed" for _ in range(10_000)}
    for ids, how in ((plain, "packed"), (long, "hashed")):
        kept = compact_ids(ids)
        assert list(kept) == [how]
        assert len(msgspec.json.encode(kept)) < 220_000
        pinned = expanded_ids(kept)
        assert pinned is not None
        assert len(pinned) == 10_000
        found = [case(name) for name in ids]
        assert judge_cases(found, pinned, 0).counts["passed"] == 10_000
        assert judge_cases(found[1:], pinned, 0).outcome is FAILED
        skipped = [found[0]._replace(outcome="skipped"), *found[1:]]
        assert judge_cases(skipped, pinned, 0).outcome is FAILED
        assert judge_cases([*found, case("new")], pinned, 0).evidence["added"] == {"passed": 1}
        evidence = judge_cases([c._replace(outcome="failed", message="m" * 400) for c in found],
                               pinned, 1).evidence  # fmt: skip
        assert len(msgspec.json.encode(evidence)) < 256 * 1024


def test_ids_that_can_not_be_kept_or_read_pin_nothing() -> None:
    assert compact_ids({f"{n:0300}": "passed" for n in range(40_000)}).keys() <= {"packed"}
    many = {rules._hash(str(n)).hex() * 10: "passed" for n in range(40_000)}
    assert compact_ids(many) == {"too_many": 40_000}
    for broken in (None, {"too_many": 3}, {"packed": "AAAA"}, {"packed": 1}, {"passed": "a"},
                   {"hashed": 3}, {"hashed": {"passed": "!"}}):  # fmt: skip
        assert expanded_ids(broken) is None


def test_a_packed_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = compact_ids({f"tests/test_{n}.py::test": "passed" for n in range(10_000)})
    monkeypatch.setattr(rules, "_EXPANDED_BYTES", 1000)
    assert expanded_ids(kept) is None
