"""The looks of the audit's page: light and dark, wide and narrow, on a screen and on paper."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1b2230;--soft:#586174;--ground:#f6f7f9;--card:#fff;
--line:#dde1e8;--track:#e6e9ef;--red:#b3261e;--amber:#8a5200;--green:#1a6e3c;--blue:#1d5fa0;
--grey:#586174}
@media (prefers-color-scheme:dark){:root{--ink:#e7eaf0;--soft:#a0a9ba;--ground:#12151b;
--card:#1a1e26;--line:#2d333f;--track:#2a303b;--red:#ff8f86;--amber:#f4b458;--green:#6bd494;
--blue:#7db8f5;--grey:#a0a9ba}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:68rem;margin:0 auto;padding:2.5rem 1.5rem 3rem}
h1{font-size:clamp(1.6rem,4vw,2.5rem);line-height:1.15;letter-spacing:-.02em;margin:.2rem 0 .5rem;
max-width:26ch;text-wrap:balance}
h2{font-size:1.1rem;margin:2.5rem 0 .75rem}
p{margin:.4rem 0}
code{font:.85em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--soft);
white-space:nowrap}
small,.of,.more,.eyebrow,footer{color:var(--soft)}
small{font-size:.8rem;white-space:nowrap}
.eyebrow{font-size:.85rem;margin:0}
.basis{font-size:1.05rem}
.mark{font-weight:600}
.said{line-height:1.7}
.task code{display:block}
.red{color:var(--red)}.amber{color:var(--amber)}.green{color:var(--green)}
.blue{color:var(--blue)}.grey{color:var(--grey)}
.rates{background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:1.1rem 1.25rem;margin-top:1.75rem;display:grid;gap:.9rem}
.rate{display:grid;grid-template-columns:6rem 1fr 5.5rem;gap:.15rem 1rem;align-items:center}
.rate .label{font-weight:600}
.rate .value{font-size:1.35rem;font-weight:700;text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}
.rate .of{grid-column:2/-1;font-size:.85rem}
.bar{display:block;width:100%;height:.9rem;border-radius:.45rem;overflow:hidden}
.track{fill:var(--track)}
.fill,.histogram rect{fill:currentColor}
.histogram .track{fill:var(--line)}
.histogram{display:block;width:6.5rem;height:2rem;color:var(--blue)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.9rem;
margin:.9rem 0 1rem}
.cards>div{background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:.9rem 1.1rem}
.cards dt{font-size:.9rem;color:var(--soft)}
.cards dd{margin:0}
.cards .value{font-size:1.6rem;line-height:1.3;font-variant-numeric:tabular-nums}
.cards .of{font-size:.85rem}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:.6rem;
margin:.6rem 0 1rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
caption{text-align:left;padding:.8rem .8rem .4rem;color:var(--soft);font-size:.9rem}
th,td{padding:.5rem .8rem;text-align:left;vertical-align:top;border-top:1px solid var(--line);
overflow-wrap:anywhere}
thead th{font-size:.78rem;font-weight:600;color:var(--soft);white-space:nowrap;border-top:0}
tbody th{font-weight:500;min-width:9rem}
tbody td{min-width:4.5rem}
td .mark{font-weight:500}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.more{padding:0 .8rem .6rem;font-size:.85rem}
footer{margin-top:3rem;font-size:.85rem}
@media (max-width:58rem){td small{display:block}}
@media (max-width:44rem){
main{padding:1.5rem 1rem 2rem}
.rate{grid-template-columns:1fr auto}
.rate .bar,.rate .of{grid-column:1/-1}
.rate .label{order:1}.rate .value{order:2}.rate .bar{order:3}.rate .of{order:4}
table,caption,tbody,tr,th,td{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{border-top:1px solid var(--line);padding:.55rem 1rem}
td small{display:inline}
th,td,.n{border:0;min-width:0;padding:.12rem 0;text-align:left;white-space:normal}
td{display:grid;grid-template-columns:7.5rem 1fr;gap:.75rem}
.cards{grid-template-columns:1fr 1fr;gap:.6rem}
.cards>div{padding:.7rem .8rem}
td::before{content:attr(data-label);color:var(--soft);font-size:.85rem}
}
@media print{
:root{--ink:#000;--soft:#444;--ground:#fff;--card:#fff;--line:#bbb;--track:#ddd;--red:#9c1c15;
--amber:#744500;--green:#145a30;--grey:#444}
body{font-size:10.5pt}
main{max-width:none;padding:0}
.rates,.cards>div,tr,h2,caption{break-inside:avoid}
h2{break-after:avoid}
.bar,.histogram{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""
