"""Lays a shape down: workspace, home, store, and the tool chain that its tests run with.

The tool chain is a small environment outside of every workspace, made from what is installed here;
an attack on tools gets a copy of its own. Nothing that the user has is ever touched.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.shapes import SHAPES, Shape
from tests.attacks.work import IMPORTABLE
from tests.forking import Forge
from truegreen.record.ledger import open_ledger

BASIC = ("pytest", "_pytest", "py.py", "pluggy", "iniconfig", "packaging", "pygments")
PLUGINS = (
    "xdist",
    "execnet",
    "pytest_randomly",
    "hypothesis",
    "_hypothesis_pytestplugin.py",
    "_hypothesis_globals.py",
    "pytest_timeout.py",
    "sortedcontainers",
    "_hypothesis_ftz_detector.py",
)
LEXERS = {"__init__.py", "_mapping.py", "diff.py", "python.py"}
"""Of the lexers of pygments, what pytest loads: every run looks at each file of the tools."""
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
HELD_OUT = (
    {"name": "sum", "stdin": '["total", [[5, 7, 11]]]', "json": 23},
    {"name": "off", "stdin": '["discount", [80, 25]]', "json": 60},
)
"""Inputs that no visible test uses."""
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ground:
    """One workspace with everything around it."""

    folder: Path
    shape: Shape
    tools: Path
    shared: Path
    command: Forge | None = None
    """Starts the command in tests; without it the installed script is started."""

    @property
    def top(self) -> Path:
        return self.folder / "top" / "work"

    @property
    def work(self) -> Path:
        """Where the agent works: the top, or a folder below it."""
        return self.top / self.shape.folder

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environ(self) -> dict[str, str]:
        """The user's environment; the state is shared, so that pinned tools are copied once."""
        extra = [
            str(Path(found).parent) for found in [shutil.which(self.shape.needs or "sh")] if found
        ]
        inside = [str(self.work / ".venv/bin")] if self.shape.venv in {"inside", "editable"} else []
        path = [*inside, str(self.tools / "bin"), *SYSTEM_PATH, *extra]
        return {
            "PATH": os.pathsep.join(dict.fromkeys(path)),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.shared / "tmp"),
            "XDG_STATE_HOME": str(self.shared / "state"),
            "TRUEGREEN_STORE": f"sqlite://{self.folder}/store/truegreen.db",
        }


def make_tools(folder: Path, packages: Iterable[str] = BASIC) -> Path:
    """An environment with pytest, as small as it gets, byte code included."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    installed = Path(sysconfig.get_path("purelib"))
    site = folder / IMPORTABLE
    for name in packages:
        for found in [installed / name, *installed.glob(f"{_project(name)}-*.dist-info")]:
            if found.is_dir():
                place = site / found.name
                shutil.copytree(found, place, ignore=_not_loaded, dirs_exist_ok=True)
            elif found.exists():
                shutil.copy(found, site)
    script = folder / "bin" / "pytest"
    script.write_text(
        f"#!{folder}/bin/python\n"
        f"import sys\n\n"
        f"from pytest import console_main\n\n"
        f"sys.exit(console_main())\n"
    )
    script.chmod(0o755)
    subprocess.run([folder / "bin/python", "-m", "compileall", "-qq", site], check=False)
    return folder


def _not_loaded(folder: str, names: list[str]) -> set[str]:
    """Lexers that pytest does not use, and byte code, which is compiled where it will lie."""
    others = set(names) - LEXERS if folder.endswith("pygments/lexers") else set()
    return others | {"__pycache__"}.intersection(names)


def _project(name: str) -> str:
    names = {"xdist": "pytest_xdist", "_hypothesis_pytestplugin.py": "hypothesis"}
    return names.get(name, name.removesuffix(".py"))


class Estate:
    """Grounds of one worker. What all workers have in common is made by the first one."""

    def __init__(self, folder: Path, common: Path, command: Forge | None = None) -> None:
        self.folder, self.common, self.command = folder, common, command
        for place in (folder / "templates", folder / "grounds", common / "state", common / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        (common / "held-out.jsonl").write_text(
            "".join(f"{json.dumps(case)}\n" for case in HELD_OUT)
        )
        self._templates: dict[str, Path] = {}
        self._store = folder / "templates" / "truegreen.db"
        open_ledger(f"sqlite://{self._store}").close()

    def tools(self, shape: Shape) -> Path:
        """The tool chain of a shape; made once."""
        name = "full" if shape.plugins else "basic"
        place = self.common / f"tools-{name}"
        with (self.common / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                make_tools(place, (*BASIC, *PLUGINS) if shape.plugins else BASIC)
        return place

    def _template(self, shape: Shape) -> Path:
        if shape.name not in self._templates:
            place = self.folder / "templates" / shape.name
            if not place.exists():
                _lay(place, shape, self.common)
            self._templates[shape.name] = place
        return self._templates[shape.name]

    def ground(self, name: str, shape: Shape) -> Ground:
        """A fresh workspace."""
        folder = self.folder / "grounds" / name
        shutil.rmtree(folder, ignore_errors=True)
        for each in ("top", "home", "store"):
            (folder / each).mkdir(parents=True)
        shutil.copy(self._store, folder / "store")
        shutil.copytree(self._template(shape), folder / "top" / "work", symlinks=True)
        tools = self.tools(shape)
        if shape.venv == "own":
            tools = self._own_tools(folder / "tools")
        ground = Ground(folder, shape, tools, self.common, self.command)
        _own_toolchain(shape, ground.home)
        if shape.venv in {"inside", "editable"}:
            made = self._own_tools(ground.work / ".venv")
            if shape.venv == "editable":
                (made / IMPORTABLE / "_shop.pth").write_text(f"{ground.work}/src\n")
        return ground

    def _own_tools(self, place: Path) -> Path:
        """A copy of the small tool chain that knows its place, as if it had been made there."""
        made = self.tools(SHAPES["src"])
        subprocess.run(["cp", "-a", made, place], check=True)
        for file in [place / "pyvenv.cfg", *(place / "bin").iterdir()]:
            if not file.is_symlink():
                file.write_text(file.read_text().replace(str(made), str(place)))
        return place


def _own_toolchain(shape: Shape, home: Path) -> None:
    """Rust is usually installed below the home, and found through it."""
    place = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rustup"
    if shape.needs == "cargo" and place.is_dir():
        (home / ".rustup").symlink_to(place)


def _lay(place: Path, shape: Shape, shared: Path) -> None:
    terms = {f"{shape.folder}/truegreen.toml".lstrip("/"): terms_of(shape, shared)}
    for path, text in {**shape.files, **terms}.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o755 if path.endswith(".sh") else 0o644)
    if shape.git:
        mine = "git -c user.name=t -c user.email=t@example.org"
        commit = f"git init -q -b main . && git add -A && {mine} commit -qm first"
        subprocess.run(["sh", "-c", commit], cwd=place, check=True)


def terms_of(shape: Shape, shared: Path) -> str:
    """The gates of a shape: `copy` is a plain command, `tests` the built-in runner."""
    protect = ", ".join(f'"{glob}"' for glob in shape.protect)
    common = f'protect = [{protect}]\nbefore = "fail"\n'
    words = ", ".join(f'"{word}"' for word in shape.command.split())
    said = f'[gates.copy]\nkind = "run"\ncommand = [{words}]\n{common}'
    if shape.pytest:
        said += f'\n[gates.tests]\nkind = "pytest"\n{common}'
        report = 'command = ["pytest", "-q", "--junitxml=report.xml"]\nreport = "report.xml"\n'
        said += f'\n[gates.junit]\nkind = "junit"\n{report}{common}'
        said += f'\n[gates.short]\nkind = "pytest"\ntimeout = "3s"\n{common}'
    if "src/shop/__main__.py" in shape.files:
        said += (
            f'\n[gates.outside]\nkind = "held_out"\ncommand = ["python", "-m", "shop"]\n'
            f'data = "{shared}/held-out.jsonl"\nenv = {{ PYTHONPATH = "src" }}\n{common}'
        )
    return said
