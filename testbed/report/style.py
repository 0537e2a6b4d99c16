"""The style sheet of a report, for wide and narrow pages, in light and dark."""

STYLE = """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.verdict { color: white; padding: 0.15em 0.6em; border-radius: 0.3em; }
.passed { background: #00745a; } .failed { background: #b02a00; }
.undecided { background: #4a4a8a; } .limited { background: #8a5a00; }
td.bad { color: #b02a00; font-weight: bold; }
table { border-collapse: collapse; margin: 0.5em 0; } caption { text-align: left; }
th, td { border-bottom: 1px solid #ddd; padding: 0.2em 0.8em 0.2em 0; text-align: right;
  vertical-align: top; }
th:first-child, td:first-child, th.text, td.text { text-align: left; }
th, td { overflow-wrap: normal; } td.text, td:first-child { overflow-wrap: anywhere; }
td { font-variant-numeric: tabular-nums; }
pre { background: #f5f5f5; padding: 0.8em; overflow-x: auto; font-size: 13px; }
figure { margin: 1em 0; }
.wide table { font-size: 13px; line-height: 1.4; width: 100%; }
.wide th, .wide td { padding-right: 0.4em; } .wide.many table { font-size: 10.5px; }
.facts td:last-child:not(.text) { white-space: nowrap; }
.manifest td { text-align: left; overflow-wrap: anywhere; }
.manifest td:first-child { overflow-wrap: break-word; }
@media (max-width: 75em) {
  .wide table, .wide tbody { display: block; } .wide tr.head { display: none; }
  .wide tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(16em, 1fr));
    gap: 0 1.5em; border-bottom: 2px solid #bbb; padding: 0.5em 0; }
  .wide td { display: flex; justify-content: space-between; gap: 0.5em; border: 0; padding: 0; }
  .wide td::before { content: attr(data-of); opacity: 0.75; }
  .wide td:first-child { grid-column: 1 / -1; justify-content: flex-start; font-weight: bold; }
  .wide td:first-child::before { content: none; }
  .wide td.text { grid-column: 1 / -1; justify-content: flex-start; }
}
.answers dt { font-weight: bold; margin-top: 0.6em; } .answers dd { margin: 0; }
@media (prefers-color-scheme: dark) {
  body { background: #1c1c1c; color: #ddd; } a { color: #8ab4f8; }
  pre { background: #2a2a2a; } th, td, .wide tr { border-color: #444; }
  td.bad { color: #ff8a65; }
}
"""
