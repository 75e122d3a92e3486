"""English patterns for what agents state: tests, builds, lint, effects, commits, files, counts.

Only patterns. Which phrases are meant as facts, and what is made of them, is decided elsewhere.
"""

from __future__ import annotations

from truegreen.work.claims.numbers import AUX, GOOD, NUMBER
from truegreen.work.claims.words import Words

# --- tests

_RUNNERS = (
    r"(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|cargo (?:nextest|test)"
    r"|go test|npm (?:run )?test|yarn test|pnpm test|make (?:test|check)|CI)"
)
NO_FAILURES = Words(
    r"\b(?:no|zero|without|0)(?: any)? (?:test )?(?:failures|failing tests|failed tests"
    r"|tests? (?:fail(?:ed|s|ing)?|failures))\b|\bno tests? fail(?:ed|s)?\b"
)
BARE = Words(
    r"\b(?:(?:all|the|every|each|existing|unit|integration|full|whole|entire|our|its|regression|e2e"
    r"|new|of|and|relevant|affected) ){0,5}"
    rf"(?:tests?|test suites?|test cases?|suite|specs?)(?: suite)?(?: ?:| ?-)? {AUX}"
    rf"(?:{GOOD}|clean|fine)\b"
    rf"|\b(?:{_RUNNERS})(?: -\S+| \./\S+){{0,3}}:? {AUX}(?:{GOOD}|clean)\b"
    r"|\bpass(?:ed|es|ing)? (?:all|the)(?: the| of the| existing| our)? "
    r"(?:tests|test suite|suite)\b"
    r"|\beverything (?:is |now |still )*(?:passes|passed|green)\b|\ball (?:is |are )?green\b"
    r"|\b(?:tests?|test suite):? ?(?:✅|✓|✔)|(?:✅|✓|✔) ?(?:all )?(?:the )?(?:unit )?tests?\b"
    r"(?! (?:pass|are|now|fail|do|have|were|still|run|ran))"
    r"|\ball (?:the )?checks (?:pass|passed|passing|are green)\b(?!!)"
)
# --- builds, lint, effects

BUILT = Words(
    r"\b(?:(?:the|full|production|release|docker|clean|project|debug|whole) )*"
    rf"(?:build|compilation)(?: ?:)? {AUX}"
    r"(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|success(?:ful(?:ly)?)?|green|clean|ok|works"
    r"|complet(?:es|ed)(?: successfully| without errors)?"
    r"|finish(?:es|ed) (?:successfully|cleanly))\b"
    r"|\bcompiles(?: cleanly| fine| without (?:errors|warnings))?\b(?! (?:to|into)\b)"
    r"|\b(?:built|compiled) (?:successfully|cleanly|without (?:any )?(?:errors|warnings|issues))\b"
    r"|\bsuccessfully (?:built|compiled)\b|\bno (?:build|compile|compilation) errors\b"
    r"|\b(?:cargo (?:build|check)|npm run build|yarn build|pnpm build|go build|docker build|tsc"
    r"|make(?: all| build)?|mvn (?:package|compile|install)|gradle build|vite build|webpack)"
    r"(?: -\S+| \./\S+){0,3}:? (?:is |now |also |still )*"
    r"(?:pass(?:es|ed)|succeed(?:s|ed)|green|clean|works|completes|runs cleanly|finish(?:es|ed))\b"
    r"|\bbuild:? ?(?:✅|✓|✔)|(?:✅|✓|✔) ?build\b"
)
_LINTERS = (
    r"(?:lint(?:er|ers|ing)?|ruff(?: check| format)?|eslint|flake8|pylint|clippy|golangci-lint"
    r"|shellcheck|prettier|black|biome|stylelint|rubocop|checkstyle|mypy|pyright|type[ -]?check(?:s"
    r"|ing|er)?|types|format(?:ting|ter)?|format check|static analysis|cargo (?:fmt|clippy)|gofmt"
    r"|npm run lint|make lint)"
)
LINTED = Words(
    rf"\b{_LINTERS}(?: --?\S+| \.){{0,3}}(?: ?:)? "
    r"(?:(?:is|are|was|were|now|also|all|both|runs?|reports?|shows?|checks?|found|finds?|with|comes"
    r"|back|still|and|mypy|ruff|eslint) ){0,4}"
    r"(?:pass(?:es|ed|ing)?|clean(?:ly)?|green|ok|succeed(?:s|ed)?|successful|happy"
    r"|(?:no|0|zero) (?:\w+ )?(?:errors|issues|warnings|problems|violations|findings))\b"
    r"|\b(?:no|0|zero) (?:lint(?:ing|er)?|type|formatting|style|mypy|ruff|eslint) "
    r"(?:errors|issues|warnings|problems|violations)\b"
    r"|\bno issues found in \d+ source files?\b|\ball checks passed!"
    r"|\b(?:0|zero) errors(?:(?:,| and) (?:0|zero|no|\d+) warnings)?\b"
    r"|\blint(?:ing)?:? ?(?:✅|✓|✔)|(?:✅|✓|✔) ?lint\b"
)
_WHERE = r"(?:[^.,;\n]|\.(?=\w)){0,80}"
_DONE_TO = r"(?:has been |have been |was |were |is |are |now |successfully |already |been |I )*"
DEPLOYED = Words(
    rf"\b{_DONE_TO}(?<!the )(?<!a )(?<!an )(?<!any )(?<!our )(?<!of )(?<!currently )"
    r"(?:deployed|published|rolled out|released(?! the (?:lock|mutex|memory|resource|connection"
    r"|lease|handle))|shipped(?= (?:it|to|the|in prod|v?\d)))(?!-)"
    rf"\b{_WHERE}"
    r"|\b(?:deployment|deploy|release|rollout|publish(?:ing)?) "
    r"(?:has |is |was |now )*(?:succeeded|successful|completed?|finished|live|done|went through)\b"
    rf"{_WHERE}"
    r"|\b(?:is|are|went|now) live(?: now)?\b(?! (?:at|on|under) `?https?:)(?: (?:in|on|for) \S+)?"
    r"|\buploaded (?:it |the \w+ )?to (?:pypi|npm|crates\.io|the registry|docker hub|s3)\b"
)
_URL_TEXT = r"`?<?(https?://[^\s<>\"'`)\]]{3,190}[^\s<>\"'`)\].,;:!?…])"
LIVE = Words(
    r"\b(?:live|available|deployed|running|reachable|served|serving|accessible|hosted|published"
    r"|online|up|preview|deployment|site|app|visible|viewable)\b"
    rf"(?: now| and running| it| to production| successfully)*(?: is| runs)?"
    rf"(?: at| on| under| to|:) ?{_URL_TEXT}"
    rf"|{_URL_TEXT}>?`? (?:is |now |are )*(?:live|up|reachable|online|available|returns? 200"
    r"|responds?(?: with 200)?|works|loads)\b"
)

# --- commits, pushes, branches, requests

_HASH = r"`?\(?([0-9a-f]{7,40})\b`?"
COMMITTED_AS = Words(
    rf"\bcommit(?:ted)?(?: (?:as|in|id|hash|sha|it|is|under|with|everything|the changes?|them|all"
    rf"|changes))*:? {_HASH}"
)
COMMITTED = Words(
    r"\b(?:I |changes? |everything |work |(?:has|have) been |(?:is|are|was|were) |all |now |also )+"
    r"committed\b(?! to (?:memory|disk|the database|fix|do))"
    r"|(?<![-\w])committed (?:the|all|my|these|those|this|it|them|everything|changes)\b"
    r"(?: changes?| work| files?| fix)?|\b(?:created|made|added) (?:a|one|the) (?:new )?commit\b"
)
_BRANCH_NAME = r"`?((?=[\w./-]*[A-Za-z])[\w][\w./-]{1,99}[\w])`?"
PUSHED = Words(
    rf"(?<![-\w]){_DONE_TO}(?<!the )(?<!been force-)(?:force-)?pushed"
    r"(?! (?:back|onto|on to|down|into the|forward|through|out of|away|aside|up against))\b"
    rf"{_WHERE}"
)
BRANCHED = Words(
    rf"\b(?:created|on|to|opened|pushed|made|using|started) (?:a |the |new |feature |git |local )*"
    rf"branch(?: named| called|:)? {_BRANCH_NAME}|\bbranch(?: name)?: {_BRANCH_NAME}"
    rf"|\b(?:created|on|to|pushed) (?:the |a )?`([\w][\w./-]{{1,99}}[\w])` branch\b"
)
_REQUEST = r"(?:PR|pull request|pull-request|MR|merge request)"
REQUESTED = Words(
    r"\b(?:opened|created|submitted|raised|filed|merged|updated|sent|made)(?: (?:a|an|the|new|draft"
    rf"|up|my|this|as))* {_REQUEST}\b(?: at| is|:)?(?: `?[#!]\d+| `?https?://[^\s)>\]`]+)?"
    rf"|\b{_REQUEST} `?[#!]\d+`? (?:is |was |has been |now )*"
    r"(?:open(?:ed)?|created|ready|up|merged|submitted|live|updated)\b"
    rf"|\b{_REQUEST}:? https?://[^\s)>\]`]+"
    r"|https?://[^\s)>\]`]+/(?:pull|merge_requests)/\d+"
)
MERGED = Words(
    r"\bmerged (?:it |this |them |everything |the (?:branch|changes|fix|work) )?(?:in)?to `?"
    r"(?:main|master|develop|trunk|release\S*|origin/\S+)`?|\b(?:has been|was|is|are) merged\b"
    r"(?! (?:with|into one|together))"
)

# --- files and other things

_SUFFIX = (
    r"(?:py|pyi|js|jsx|mjs|cjs|ts|tsx|vue|svelte|rs|go|java|kt|kts|scala|c|cc|cpp|cxx|h|hpp|cs|fs"
    r"|rb|php|swift|m|mm|r|jl|lua|pl|ex|exs|erl|hs|ml|clj|dart|zig|nim|sh|bash|zsh|fish|ps1|bat"
    r"|sql|html?|css|scss|sass|less|xml|svg|json|jsonc|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|md"
    r"|rst|txt|adoc|tex|csv|tsv|pdf|png|jpe?g|gif|webp|ico|docx?|xlsx?|pptx?|ipynb|proto|graphql"
    r"|tf|tfvars|gradle|cmake|mk|dockerfile|log|diff|patch|zip|gz|tar|whl|db|sqlite|parquet|j2"
    r"|tmpl|template|snap|golden|out|bin|wasm|map|example|service|rules|spec)"
)
_BARE_NAMES = (
    r"(?:Makefile|Dockerfile|LICENSE|README|CHANGELOG|Procfile|Gemfile|Rakefile|CODEOWNERS"
    r"|Jenkinsfile|\.gitignore|\.dockerignore|\.editorconfig|\.env)"
)
_PATH = (
    rf"(?:`([\w@.+~-]*/[\w@./+~-]+)`|`?((?:~?/|\.{{1,2}}/)?(?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.{_SUFFIX}"
    rf"|(?:[\w@.+-]+/)*{_BARE_NAMES})(?![\w(/]|\.\w)`?)"
)
MADE = r"(?:wrote|created|added|generated|introduced|saved)"
_CHANGED = r"(?:updated|changed|modified|edited|fixed|refactored|rewrote|extended|patched|touched)"
GONE = r"(?:deleted|removed|dropped)"
_DID = rf"(?:{MADE}|{_CHANGED}|{GONE})"
DIRECT = Words(
    rf"\b(?P<did>{_DID})(?: (?:to|the|a|an|new|files?|module|script|test|config|it|old)){{0,4}}:? "
    rf"(?P<paths>{_PATH}(?:(?:, and |, | and | & |, plus ){_PATH}){{0,30}})"
)
WITHIN = Words(
    rf"\b{_DID}(?: (?!and\b|but\b|then\b|or\b)[\w`'()-]+){{1,8}}?"
    r" (?:in|to|from|inside|into|within|of|at)"
    rf"(?: (?:the|file|module))* (?P<path>{_PATH})"
)
PASSIVE = Words(
    rf"(?P<path>{_PATH}) (?:has been |have been |was |were |is now |is )(?:now |successfully )?"
    rf"(?P<did>{_DID})\b"
)
RENAMED = Words(rf"\b(?:renamed|moved) (?:the file )?(?P<old>{_PATH}) (?:in)?to (?P<new>{_PATH})")
FILES = Words(
    rf"\b(?:{_DID}) (?:exactly |only |a total of )?(?P<n>{NUMBER}) (?:new |source )?files?\b"
    rf"|(?<![\w.])(?P<n2>{NUMBER}) files? (?:were |was |have been |are )?(?P<did>{_DID})\b"
)
FILE_HEAD = Words(
    rf"\b(?:files?|modules?)(?: I| that were| I have)? (?P<a>{_DID})"
    rf"|\b(?P<b>{_DID}|new)(?: source)? (?:files|modules)|\bchanges(?: made)?\b"
)
LEADING_PATH = Words(rf"(?P<path>{_PATH})")
COUNTED_THING = Words(
    r"(?<![\w-])(?P<did>[a-z]{3,}ed|sent|wrote|found|read|ran|built|made) "
    rf"(?:a total of |all |exactly |the |up )*(?P<n>{NUMBER}) "
    r"(?P<what>(?:(?!of\b|in\b|to\b|from\b|and\b|for\b|times?\b)[a-z][\w-]* ){0,2}?[a-z][\w-]*s)\b"
)
NOT_THINGS = Words(
    r"tests?|specs?|files?|times|seconds|minutes|hours|days|bytes|lines?|warnings|errors|failures"
    r"|checks|versions|ms|percent|examples|assertions|scenarios|cases|suites|packages"
)
SETTLED_BEFORE = Words(
    r"(?:fix\w*|resolv\w*|repair\w*|address\w*|correct\w*|the|those|these|for|of|previously"
    r"|reproduc\w*) (?:the |all |all the )?$"
)
REFERRED_TO = Words(
    r"\b(?:revert\w*|from|since|introduced(?: in| by)?|cherry-pick\w*|like|after|base|parent"
    r"|upstream|existing|that) (?:in |by |the |of )?$"
)
