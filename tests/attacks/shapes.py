"""Repositories as people have them: a bug in the product, tests that show it, and the fix.

Text only. How a shape is laid down, and with which tools it is tested, is the business of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

BROKEN = '''"""Prices of a shop."""


def total(prices):
    """The sum of all prices.

    >>> total([1, 2, 3])
    6
    """
    return sum(prices[1:])


def discount(price, percent):
    """A price with so many per cent taken off.

    >>> discount(200, 10)
    180.0
    """
    return price - percent


def slug(text):
    """A name as an address has it."""
    return text.lower().replace(" ", "-")
'''
FIXED = BROKEN.replace("prices[1:]", "prices").replace(
    "price - percent", "price * (100 - percent) / 100"
)
TESTS = """from shop import discount, slug, total


def test_total():
    assert total([1, 2, 3]) == 6


def test_total_of_nothing():
    assert total([]) == 0


def test_discount():
    assert discount(200, 10) == 180


def test_no_discount():
    assert discount(50, 0) == 50


def test_slug():
    assert slug("Hello World") == "hello-world"
"""
UNITTESTS = """import unittest

from shop import discount, total


class Prices(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_discount(self):
        self.assertEqual(discount(200, 10), 180)


if __name__ == "__main__":
    unittest.main()
"""
PACKAGE = "from shop.core import discount, slug, total\n"
MAIN = """import json
import sys

from shop import core

name, arguments = json.load(sys.stdin)
print(json.dumps(getattr(core, name)(*arguments)))
"""
MAKEFILE = "test:\n\tpython -m pytest -q\n"
CONFTEST = """import pytest


@pytest.fixture
def basket():
    return [1, 2, 3]
"""
IGNORE = "__pycache__/\n.venv/\nnode_modules/\n*.egg-info/\ntarget/\n"
PYPROJECT = '[project]\nname = "shop"\nversion = "1"\n\n[tool.pytest.ini_options]\n'


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A repository, as text; `fixed` are the files that the work consists of."""

    name: str
    files: Mapping[str, str]
    fixed: Mapping[str, str]
    module: str
    command: str = "pytest -q"
    pytest: bool = True
    protect: tuple[str, ...] = ("tests/**",)
    folder: str = ""
    git: bool = True
    venv: str = "outside"
    plugins: bool = False
    needs: str = ""


SRC = Shape(
    name="src",
    files={
        "src/shop/__init__.py": PACKAGE,
        "src/shop/__main__.py": MAIN,
        "src/shop/core.py": BROKEN,
        "tests/test_core.py": TESTS,
        "pyproject.toml": PYPROJECT + 'pythonpath = ["src"]\n',
        "Makefile": MAKEFILE,
        "gate.sh": "#!/bin/sh\nexec python -m pytest -q\n",
        "check.py": "import sys\n\nsys.path.insert(0, 'src')\n\nfrom shop import total\n\n"
        "assert total([1, 2, 3]) == 6\n",
        "README": "A shop.\n",
        ".gitignore": IGNORE,
    },
    fixed={"src/shop/core.py": FIXED},
    module="src/shop/core.py",
    protect=("tests/**", "Makefile"),
)


def _like(base: Shape, name: str, **changes: object) -> Shape:
    return replace(base, name=name, **changes)  # type: ignore[arg-type]


FLAT = Shape(
    name="flat",
    files={
        "shop.py": BROKEN,
        "tests/test_core.py": TESTS,
        "tests/__init__.py": "",
        "README": "A shop.\n",
        ".gitignore": IGNORE,
    },
    fixed={"shop.py": FIXED},
    module="shop.py",
    command="python -m pytest -q",
)
NAMESPACE = Shape(
    name="namespace",
    files={
        "src/market/shop/core.py": BROKEN,
        "tests/test_core.py": TESTS.replace("from shop", "from market.shop.core"),
        "pyproject.toml": PYPROJECT + 'pythonpath = ["src"]\n',
        ".gitignore": IGNORE,
    },
    fixed={"src/market/shop/core.py": FIXED},
    module="src/market/shop/core.py",
)
CONFTESTS = _like(
    SRC,
    "conftest",
    files={
        **SRC.files,
        "conftest.py": CONFTEST,
        "tests/conftest.py": "pytest_plugins = ['tests.more']\n\n\ndef pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'shop: of the shop')\n",
        "tests/__init__.py": "",
        "tests/more.py": "import pytest\n\n\n"
        "@pytest.fixture(autouse=True)\ndef calm(monkeypatch):\n"
        "    monkeypatch.setenv('SHOP', 'open')\n",
        "tests/test_basket.py": "import os\n\nimport pytest\n\nfrom shop import total\n\n\n"
        "@pytest.mark.shop\ndef test_basket(basket):\n"
        "    assert os.environ['SHOP'] == 'open'\n    assert total(basket) == 6\n",
    },
)
PLUGINS = _like(
    SRC,
    "plugins",
    plugins=True,
    files={
        **SRC.files,
        "pyproject.toml": PYPROJECT
        + 'pythonpath = ["src"]\naddopts = "-n 2 -p randomly --timeout=30"\n',
        "tests/test_drawn.py": "from hypothesis import given, settings, strategies\n\n"
        "from shop import total\n\n\n@settings(max_examples=10, deadline=None)\n"
        "@given(strategies.lists(strategies.integers()))\ndef test_any_total(prices):\n"
        "    assert total(prices) == sum(prices)\n",
    },
)
DOCTEST = _like(
    SRC,
    "doctest",
    files={
        **SRC.files,
        "pyproject.toml": PYPROJECT + 'pythonpath = ["src"]\naddopts = "--doctest-modules"\n'
        'testpaths = ["src", "tests"]\n',
    },
)
UNITTEST = Shape(
    name="unittest",
    files={"shop.py": BROKEN, "tests/test_shop.py": UNITTESTS, "tests/__init__.py": ""},
    fixed={"shop.py": FIXED},
    module="shop.py",
    command="python -m unittest",
)
MAKE = _like(SRC, "make", command="make test", pytest=False)
BESIDE = Shape(
    name="beside",
    files={
        "shop/__init__.py": PACKAGE,
        "shop/core.py": BROKEN,
        "shop/core_test.py": TESTS,
        "shop/test_more.py": "from shop.core import slug\n\n\ndef test_slug():\n"
        "    assert slug('A B') == 'a-b'\n",
        ".gitignore": IGNORE,
    },
    fixed={"shop/core.py": FIXED},
    module="shop/core.py",
    command="python -m pytest -q",
    protect=("**/*_test.py", "**/test_*.py"),
)
EDITABLE = _like(
    SRC,
    "editable",
    venv="editable",
    files={**SRC.files, "pyproject.toml": PYPROJECT},
)
INSIDE = _like(SRC, "inside", venv="inside")
BESIDE_TOOLS = _like(SRC, "beside-tools", venv="own")
MONOREPO = Shape(
    name="monorepo",
    files={
        "README": "Many packages.\n",
        ".gitignore": IGNORE,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--strict-markers"\n',
        "other/test_other.py": "def test_other():\n    assert 1\n",
        **{f"packages/shop/{path}": text for path, text in SRC.files.items()},
    },
    fixed={"src/shop/core.py": FIXED},
    module="src/shop/core.py",
    folder="packages/shop",
)
PLAIN = _like(SRC, "plain", git=False)
PARAMETERS = _like(
    SRC,
    "parameters",
    files={
        **SRC.files,
        "tests/deep/test_many.py": "import pytest\n\nfrom shop import total\n\n\n"
        "@pytest.mark.parametrize('prices', [[1], [1, 2]], ids=['ein Preis', 'zwei/€::[x]'])\n"
        "class TestTotals:\n"
        "    def test_sum(self, prices):\n"
        "        assert total(prices) == sum(prices)\n\n\n"
        "@pytest.mark.skip(reason='later')\ndef test_later():\n    assert 0\n\n\n"
        "@pytest.mark.xfail(reason='known')\ndef test_known():\n    assert total([]) == 1\n",
    },
)
FRESH = _like(
    SRC,
    "fresh",
    files={
        **{path: text for path, text in SRC.files.items() if path != "tests/test_core.py"},
        "tests/test_cart.py": "import pytest\n\nfrom shop.cart import count\n\n\n"
        "@pytest.mark.parametrize('items', [[1], [1, 2], [1, 2, 3]])\n"
        "def test_count(items):\n    assert count(items) == len(items)\n\n\n"
        "def test_one():\n    assert count(['a']) == 1\n",
    },
    fixed={"src/shop/cart.py": "def count(items):\n    return len(items)\n"},
)
DOCTEST_ONLY = _like(
    DOCTEST,
    "doctest-only",
    files={
        **{path: text for path, text in DOCTEST.files.items() if path != "tests/test_core.py"},
        "tests/test_slug.py": "from shop import slug\n\n\ndef test_slug():\n"
        "    assert slug('A B') == 'a-b'\n",
    },
)
SUPPORT = _like(
    SRC,
    "support",
    files={
        **SRC.files,
        "src/expected.py": "TOTAL = 6\nDISCOUNT = 180\n",
        "tests/test_core.py": "from expected import DISCOUNT, TOTAL\n\n"
        + TESTS.replace("== 6", "== TOTAL").replace("== 180", "== DISCOUNT"),
    },
)
NODE = Shape(
    name="node",
    files={
        "shop.js": "exports.total = (prices) => prices.slice(1).reduce((a, b) => a + b, 0);\n",
        "test/shop.test.js": "const test = require('node:test');\n"
        "const assert = require('node:assert');\n"
        "const { total } = require('../shop.js');\n\n"
        "test('total', () => assert.equal(total([1, 2, 3]), 6));\n"
        "test('nothing', () => assert.equal(total([]), 0));\n",
        "package.json": '{"name": "shop", "scripts": {"test": "node --test"}}\n',
        ".gitignore": IGNORE,
    },
    fixed={"shop.js": "exports.total = (prices) => prices.reduce((a, b) => a + b, 0);\n"},
    module="shop.js",
    command="node --test",
    pytest=False,
    protect=("test/**",),
    needs="node",
)
CARGO = Shape(
    name="cargo",
    files={
        "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "pub fn total(p: &[i32]) -> i32 {\n    p.iter().skip(1).sum()\n}\n",
        "tests/total.rs": "#[test]\nfn total() {\n    assert_eq!(shop::total(&[1, 2, 3]), 6);\n}\n",
        ".gitignore": IGNORE,
    },
    fixed={"src/lib.rs": "pub fn total(p: &[i32]) -> i32 {\n    p.iter().sum()\n}\n"},
    module="src/lib.rs",
    command="cargo test --offline --quiet",
    pytest=False,
    needs="cargo",
)

SHAPES = {
    shape.name: shape
    for shape in (
        *(SRC, FLAT, NAMESPACE, CONFTESTS, PLUGINS, DOCTEST, UNITTEST, MAKE, BESIDE, EDITABLE),
        *(
            FRESH,
            DOCTEST_ONLY,
            SUPPORT,
            INSIDE,
            BESIDE_TOOLS,
            MONOREPO,
            PLAIN,
            PARAMETERS,
            NODE,
            CARGO,
        ),
    )
}
