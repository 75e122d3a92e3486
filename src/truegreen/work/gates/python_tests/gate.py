"""The gate kind `pytest`: the answer of a session, of its control, and of what was there before.

Red first, then every reason not to be green, then green. What the agent's own tests say is told and
proves nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Gate, Isolation
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates.around import needed
from truegreen.work.gates.cases import (
    ERROR,
    FAIL_TO_PASS,
    FAILED,
    PASSED,
    SKIPPED,
    XFAILED,
    Case,
    holds,
    named,
    transitions,
)
from truegreen.work.gates.output import one_line, text_of
from truegreen.work.gates.python_tests import bench as benches
from truegreen.work.gates.python_tests import control as controls
from truegreen.work.gates.python_tests import session
from truegreen.work.gates.python_tests.bench import Bench, bench_of, doubt_of
from truegreen.work.gates.python_tests.canary import hatch
from truegreen.work.gates.python_tests.pins import BAD, Pinned, changing, numbered, pinned_of
from truegreen.work.gates.python_tests.session import Asked, Session
from truegreen.work.gates.python_tests.words import (
    file_of,
    function_of,
    functions_in,
    paths,
    selects,
)
from truegreen.work.gates.reports import compact_ids, judge_cases
from truegreen.work.gates.run import Located, with_evidence
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error
from truegreen.work.gates.test_files import is_doctest
from truegreen.work.jail import choose
from truegreen.work.workspace import Globs

_ADDED_S = 120.0
_MOCKED_S, _MOCKED_RATIO = 30.0, 2.0
"""How long a control of the base may take where mocks stand in for what is missing."""


def check(gate: Gate, scene: Scene) -> Answer:
    """Run the tests, and the control beside them."""
    bench = bench_of(gate, scene)
    if isinstance(bench, str):
        return gate_error(bench)
    pinned = pinned_of(scene.pinned)
    sitting = _Sitting(bench, pinned)
    answer = sitting.run()
    if answer.outcome is FindingOutcome.FAILED:
        code = answer.evidence.get("exit_code") or 0
        if needs := needed((), code, str(answer.evidence.get("output", "")), scene):
            evidence = {key: value for key, value in answer.evidence.items() if key != "ids"}
            return replace(gate_error(needs), evidence=evidence, isolation=answer.isolation)
    if pinned.ids is not None:
        answer = _with_added(answer, bench, pinned)
    return answer


class _Sitting:
    """One question to a suite: the session that decides, and its control."""

    def __init__(self, bench: Bench, pinned: Pinned) -> None:
        self.bench, self.pinned = bench, pinned
        scene = bench.scene
        self.jailed = choose(scene.isolation) is Isolation.JAIL
        self.unasked: list[str] = []
        self.on_base = pinned.ids is None and scene.left.digest == scene.base.digest
        self.canary = hatch() if pinned.canary else None
        self.by_count = pinned.by_count
        self.asked = Asked(
            args=bench.gate.args, ignored=bench.added, canary=self.canary, listed=self.on_base
        )

    def run(self) -> Answer:
        """The session, and beside it or after it the control."""
        bench, scene = self.bench, self.bench.scene
        beside = self._started() if self._can_run_beside() else None
        try:
            main = session.run(bench.place, self._hidden(scene), self.asked, scene.tick)
            answer = self._first(main)
            if beside and (answer.green or self.on_base):
                control, thread = beside
                said = thread.wait(scene.tick)
            elif answer.green or (self.on_base and not main.fault):
                control, said = self._after(main)
            else:
                return self._finished(answer, main)
        finally:
            if beside:
                beside[1].stop()
        if isinstance(said, str):
            return self._finished(gate_error(f"stopped ({said})", lasting=False), main)
        return self._finished(self._controlled(answer, main, control, said), main)

    # The control

    def _can_run_beside(self) -> bool:
        """Two at once would be in each other's way where they share a network or a path."""
        apart = self.jailed and not self.bench.gate.network
        return apart and self.pinned.plain and not self.pinned.trouble

    def _hidden(self, scene: Scene) -> Scene:
        """The session does not see the rooms of the others."""
        rooms = os.path.dirname(os.path.dirname(scene.root))
        return replace(scene, hidden=(*scene.hidden, rooms))

    def _prepared(
        self,
        names: set[str],
        red: set[str],
        took: float,
        unloaded: Mapping[str, set[str]] = {},
    ) -> controls.Control:
        pinned = self.pinned
        salt = pinned.salt or controls.new_salt()
        self.salt = salt
        functions = controls.chosen(names, red, took, salt)
        return controls.prepare(
            self._hidden(self.bench.scene),
            self.bench.place,
            self.asked,
            functions,
            left_out=names - set(functions),
            canary=pinned.canary,
            usable=lambda path: self.on_base or not benches.differs(self.bench, path),
            red=red,
            recognised=self.on_base,
            unloaded=unloaded,
        )

    def _started(self) -> tuple[controls.Control, controls.Beside]:
        pinned = self.pinned
        names, red = pinned.functions(), pinned.red()
        if pinned.unlisted:
            inherited = self._inherited(pinned.unlisted)
            names, red = names | inherited, red | inherited
        control = self._prepared(names, red, pinned.seconds)
        place = self.bench.place
        return control, controls.Beside(
            lambda tick: session.run(place, control.scene, control.asked, tick)
        )

    def _unloaded(self, cases: Sequence[Case]) -> dict[str, set[str]]:
        """Files of the base that could not be loaded, with their tests by their text."""
        found: dict[str, set[str]] = {}
        for file, each in self._listing(_broken(cases)).get("uncollected", {}).items():
            found[file] = {f"{file}::{name}" for name in (*each["must"], *each["may"])}
            found[file] |= self._inherited([file])
        return found

    def _inherited(self, files: Iterable[str]) -> set[str]:
        """Tests of files that could not be loaded that are written in other files or classes."""
        from truegreen.work.gates.python_tests.definitions import (  # noqa: PLC0415 - ast is heavy
            Definitions,
        )

        bench = self.bench
        roots = (bench.settings.root, bench.scene.folder)
        definitions = Definitions(
            bench.on_disk, roots, lambda path: not benches.differs(bench, path)
        )
        return {
            f"{file}::{name}"
            for file in files
            for name in definitions.elsewhere(bench.in_tree(file))
        }

    def _after(self, main: Session) -> tuple[controls.Control, Session]:
        cases = self._own(main)
        names = functions_in(case.id for case in cases)
        bad = functions_in(case.id for case in cases if case.outcome in BAD)
        red = bad | self.pinned.red()
        took = main.ended.seconds
        unloaded = self._unloaded(cases) if self.on_base else {}
        control = self._prepared(names, red, took, unloaded)
        if control.loaded:
            # Fixtures that wait for a mock may wait for ever
            limit = min(_MOCKED_S + _MOCKED_RATIO * took, int(self.bench.gate.timeout) / 1e6)
            said = self._run(control, control.asked._replace(time_s=limit))
            if not said.fault:
                return control, said
            control = self._prepared(names, red, took)
        return control, self._run(control, control.asked)

    def _run(self, control: controls.Control, asked: Asked) -> Session:
        return session.run(self.bench.place, control.scene, asked, self.bench.scene.tick)

    def _controlled(
        self, answer: Answer, main: Session, control: controls.Control, said: Session
    ) -> Answer:
        if self.on_base and self.canary and self.canary.trouble(main.cases):
            control = control._replace(asked=control.asked._replace(canary=None))
        answer, said = self._counted_alike(answer, main, said)
        cases = self._own(main)
        ids = self.pinned.ids or {}
        never = {name for name, outcome in ids.items() if outcome in (SKIPPED, XFAILED)}
        heard = controls.listen(
            control, said, cases, self.pinned.deaf | never, self.pinned.calibrated
        )
        told = controls.evidence_of(control, heard)
        if self.on_base:
            told |= {"salt": self.salt, "canary": control.asked.canary is not None}
            told |= controls.calibration(control, said, cases)
        answer = replace(answer, evidence={**answer.evidence, "control": told})
        if self.on_base and said.fault and not said.lasting:
            return gate_error(f"the control did not work: {said.fault}", lasting=False)
        if self.on_base:
            return answer
        if not answer.green or self.pinned.trouble:
            return answer
        if heard.caught:
            return failed(
                f"control: {named(heard.caught)} passed although its expectation was changed: the"
                " code under test decides its own tests",
                **_without_transitions(answer.evidence),
            )
        silent = f"{named(heard.silent)} did not run in it" if heard.silent else ""
        if trouble := heard.trouble or silent:
            again = said.lasting and not heard.silent
            return gate_error(
                f"the control did not work: {trouble}", lasting=again, **answer.evidence
            )
        self.unasked = [name for name in self._fixed(cases) if name not in heard.failed]
        return answer

    def _counted_alike(
        self, answer: Answer, main: Session, said: Session
    ) -> tuple[Answer, Session]:
        """Both sessions with the same ids, where the suite makes new ones in each session."""
        if self.on_base and said.collected:
            number = changing(main.collected, said.collected)
            self.by_count = frozenset(number)
            if number:
                ids = {
                    case.id: case.outcome
                    for case in self._own(main)
                    if not _beyond(case.id, number)
                }
                told = {"ids": compact_ids(ids), "by_count": sorted(number)}
                answer = replace(answer, evidence={**answer.evidence, **told})
        elif not self.on_base and self.pinned.unlisted:
            # The base has no record of these; ids that differ are compared by count
            new = [
                [case.id for case in each.cases if file_of(case.id) in self.pinned.unlisted]
                for each in (main, said)
            ]
            self.by_count |= changing(*new).keys()
        return answer, said._replace(cases=tuple(numbered(said.cases, self.by_count)))

    def _fixed(self, cases: Sequence[Case]) -> list[str]:
        """The tests that failed before the agent and pass now."""
        turned = transitions(cases, self.pinned.ids or {}, self.pinned.unlisted)
        return [name for name, how in turned.items() if how == FAIL_TO_PASS]

    # The session

    def _own(self, main: Session) -> list[Case]:
        cases = self.canary.apart(main.cases) if self.canary else list(main.cases)
        return numbered(cases, self.by_count)

    def _first(self, main: Session) -> Answer:
        """What the session alone says."""
        if main.fault:
            return self._unanswered(main)
        cases = self._own(main)
        pinned = self.pinned
        answer = judge_cases(cases, pinned.ids, self._code(main, cases), unlisted=pinned.unlisted)
        checked = self.canary if answer.green and not self.on_base else None
        if checked and (wrong := checked.trouble(main.cases)):
            return gate_error(wrong, **answer.evidence)
        if main.code and not answer.green and "though the report says" in answer.reason:
            said = session.last_error(text_of(main.ended.stdout.tail))
            answer = replace(answer, reason=one_line(f"{answer.reason} ({said})"))
        if not answer.counts["failed"] and (lost := self._lost(cases)):
            shown = [f"{name} ({how})" for name, how in lost.items()]
            told = {**answer.evidence, "lost": shown[:20]}
            answer = replace(
                failed(f"{len(lost)} that stood in the tests did not pass: {named(shown)}", **told),
                counts=answer.counts,
            )
        return self._with_listing(answer, cases)

    def _code(self, main: Session, cases: Sequence[Case]) -> int:
        """The exit code, but for what only tests that don't count explain."""
        counted = self._counted(cases)
        if main.code == 1 and any(case.outcome in BAD for case in main.cases):
            return 1 if any(case.outcome in BAD for case in counted) else 0
        return main.code

    def _counted(self, cases: Sequence[Case]) -> list[Case]:
        pinned = self.pinned
        if pinned.ids is None or not pinned.plain:
            return list(cases)
        return [
            case for case in cases if case.id in pinned.ids or file_of(case.id) in pinned.unlisted
        ]

    def _lost(self, cases: Sequence[Case]) -> dict[str, str]:
        if not self.pinned.known:
            return {}
        from truegreen.work.gates.python_tests.known import missing  # noqa: PLC0415 - ast is heavy

        bench = self.bench
        settings = bench.settings
        selected = settings.renamed or selects((*settings.addopts, *bench.gate.args))
        return missing(self.pinned.known, cases, selected=selected)

    def _with_listing(self, answer: Answer, cases: Sequence[Case]) -> Answer:
        """On the base: the tests of files that could not be loaded, by their text."""
        if self.pinned.ids is not None:
            kept = {key: value for key, value in answer.evidence.items() if key != "ids"}
            return replace(answer, evidence=kept)
        return replace(answer, evidence={**answer.evidence, **self._listing(_broken(cases))})

    def _listing(self, files: Sequence[str]) -> dict[str, Any]:
        from truegreen.work.gates.python_tests.known import known_tests  # noqa: PLC0415 - ast

        conftests = self.bench.conftests() if files else []
        listing = {}
        for file in files:
            data = self.bench.base.read(self.bench.in_tree(file)) or b""
            tests = known_tests(file, data, conftests)
            cut = len(file) + 2
            cases = {test.id[cut:]: test.cases for test in tests if test.cases > 1}
            listing[file] = {
                "must": [test.id[cut:] for test in tests if not test.excused],
                "may": [test.id[cut:] for test in tests if test.excused],
                **({"cases": cases} if cases else {}),
            }
        return {"uncollected": listing} if listing else {}

    def _unanswered(self, main: Session) -> Answer:
        if main.conftest:
            return self._without_conftest(main)
        gone = re.search(r"file or directory not found: (\S+)", main.fault)
        if gone and gone[1] in paths(self.bench.gate.args):
            told = compact_ids({}) if self.pinned.ids is None else None
            more = {"ids": told} if told is not None else {}
            if self.on_base:
                return failed(f"there is no {gone[1]} yet; tests that an agent adds prove nothing")
            return failed(f"{gone[1]} is gone", **more)
        return gate_error(main.fault, lasting=main.lasting)

    def _without_conftest(self, main: Session) -> Answer:
        """A conftest of the base that can't be imported: the code that it imports is missing."""
        shown = main.conftest.removeprefix(f"{self.bench.scene.sight}/")
        answer = failed(f"{shown} can't be imported: {main.fault}")
        if self.pinned.ids is not None:
            return answer
        root = self.bench.settings.root
        files = [
            os.path.relpath(path, root) if root else path
            for path in sorted(self.bench.base.files)
            if self.bench.is_test(path) and path.endswith(".py")
        ]
        evidence = {"ids": compact_ids({}), **self._listing(files)}
        return replace(answer, evidence=evidence)

    # The answer

    def _finished(self, answer: Answer, main: Session) -> Answer:
        """With what it rests on, and the level that it is worth."""
        bench = self.bench
        # A doctest lies in the product, which the agent is there to change: see rooms.
        cases = (case.id.partition("::") for case in self._counted(self._own(main)))
        counted = {file for file, _, test in cases if not is_doctest(file, test)}
        doubt = doubt_of(bench, counted)
        words = ("pytest", *bench.gate.args)
        found = Located(words, "", doubt)
        answer = with_evidence(answer, words, found, main.ended, bench.scene, bench.python)
        own = len(main.cases) - len(self._own(main))
        output = _without_canaries(str(answer.evidence.get("output", "")), own)
        answer = replace(answer, evidence={**answer.evidence, "output": output})
        short = self._short(answer)
        level = Level.A1 if doubt else Level.A2 if short or not answer.green else Level.A3
        told: dict[str, Any] = {"python": bench.python.program}
        told |= {"short": short} if short and answer.green and not self.on_base else {}
        return replace(answer, level=level, evidence={**answer.evidence, **told})

    def _short(self, answer: Answer) -> list[str]:
        """What keeps it from A3."""
        control = answer.evidence.get("control", {})
        trouble = self.pinned.trouble
        reasons = (
            (self.pinned.ids is None, "nobody knows which tests ran before the agent"),
            (bool(trouble), f"a control was not possible before the agent, either: {trouble}"),
            (not control.get("heard"), "no test had an expectation that could be changed"),
            (bool(self.unasked), f"the control could not ask {named(self.unasked)}"),
        )
        return [why for holds, why in reasons if holds]


def _broken(cases: Sequence[Case]) -> list[str]:
    """The files that could not be loaded."""
    return [case.id for case in cases if case.id.endswith(".py") and case.outcome == ERROR]


def _without_transitions(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """What a report says about tests that the code decides itself shows nothing."""
    hidden = ("transitions", FAIL_TO_PASS)
    return {name: value for name, value in evidence.items() if name not in hidden}


def _without_canaries(output: str, number: int) -> str:
    """The end of a session's output, whose summary counts the tests of the suite only."""
    found = list(_SUMMARY.finditer(output))
    passed = re.search(r"(\d+) passed", found[-1][0]) if found else None
    if passed is None or int(passed[1]) < number:
        return output
    start, end = (found[-1].start() + at for at in passed.span(1))
    return f"{output[:start]}{int(passed[1]) - number}{output[end:]}"


_SUMMARY = re.compile(
    r"^=* ?\d+ (?:subtests? )?[a-z]+(?:, \d+ (?:subtests? )?[a-z]+)* in [\d.]+s\b.*$", re.MULTILINE
)


def _beyond(name: str, number: Mapping[str, int]) -> bool:
    """Whether a numbered case is one more than each session is known to have."""
    function, _, rest = name.rpartition("[#")
    return function in number and int(rest.rstrip("]")) > number[function]


# --- what the agent added


def _with_added(answer: Answer, bench: Bench, pinned: Pinned) -> Answer:
    """Run the agent's own tests on the tree as it left it; they are told, and never counted."""
    if answer.outcome is FindingOutcome.INCONCLUSIVE:
        return answer
    found = Counter[str](answer.evidence.get("added", {}))
    files = [path for path in bench.added if bench.is_test(path) and path.endswith(".py")]
    edited = _edited(bench)
    if files or edited:
        found += _run_added(bench, files, edited, pinned)
    if not found:
        return answer
    if pinned.nothing and not any(Globs(bench.gate.protect).cover(path) for path in files):
        return _all_their_own(answer, found)
    said = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found.items(), key=_order))
    evidence = {**answer.evidence, "added": dict(found)}
    reason = re.sub(r" \(and \d+ added by the agent, not counted\)", "", answer.reason)
    return replace(
        answer, reason=one_line(f"{reason}; agent's own tests: {said}"), evidence=evidence
    )


def _all_their_own(answer: Answer, found: Counter[str]) -> Answer:
    """Where there was no test before the agent, its own are all there is: worth A1, no more."""
    counts = {name: found.get(name, 0) for name in (PASSED, FAILED, SKIPPED)}
    bad = sum(found[name] for name in (*BAD, "not run"))
    said = ", ".join(f"{n} {outcome}" for outcome, n in sorted(found.items(), key=_order))
    told = {**answer.evidence, "added": dict(found), "doubt": "every test is the agent's own"}
    green = found[PASSED] and not bad
    return replace(
        answer,
        outcome=FindingOutcome.PASSED if green else FindingOutcome.FAILED,
        reason=one_line(f"{said}; every test is the agent's own"),
        level=Level.A1,
        counts=counts,
        evidence=told,
    )


def _order(item: tuple[str, int]) -> tuple[bool, str]:
    return item[0] != "passed", item[0]


def _edited(bench: Bench) -> dict[str, set[str]]:
    """Restored files of the base that the agent added tests to, and the names of these tests."""
    changed = [change.path for change in bench.scene.changes if change.how == "changed"]
    files = [
        path
        for path in changed
        if path.endswith(".py") and bench.is_test(path) and not benches.differs(bench, path)
    ]
    if not files:
        return {}
    from truegreen.work.gates.python_tests.known import known_tests  # noqa: PLC0415 - ast is heavy

    edited = {}
    for path in files:
        before, left = (
            {test.id for test in known_tests(path, data or b"")}
            for data in (bench.base.read(path), benches.left_by_agent(bench, path))
        )
        if left - before:
            edited[path] = left - before
    return edited


def _run_added(
    bench: Bench, files: Sequence[str], edited: Mapping[str, set[str]], pinned: Pinned
) -> Counter[str]:
    scene = controls.beside(bench.scene)
    scene.workspace.lay(scene.left, scene.root, also=scene.files)
    benches.drop_byte_code(scene.root)
    folder = scene.folder or "."
    asked = Asked(
        args=tuple(os.path.relpath(path, folder) for path in (*files, *edited)),
        time_s=min(_ADDED_S, int(bench.gate.timeout) / 1e6),
    )
    place = bench.place._replace(config="", more=())
    said = session.run(place, scene, asked, scene.tick)
    if said.fault:
        return Counter({"not run": len(files) + len(edited)})
    known = pinned.ids or {}
    mine = [case for case in said.cases if not holds(known, case.id)]
    return Counter(
        case.outcome
        for case in mine
        for path in [bench.in_tree(file_of(case.id))]
        if path not in edited or f"{path}::{_in_file(case.id)}" in edited[path]
    )


def _in_file(name: str) -> str:
    return function_of(name).partition("::")[2]
