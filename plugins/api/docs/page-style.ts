export const style = `
:root {
  color-scheme: light dark;
  --back: #ffffff; --panel: #f4f5f7; --text: #1c2128; --faint: #5c6570; --line: #d5d9df; --accent: #0b62c4;
  --get: #0b7a45; --post: #0b62c4; --put: #9a5b00; --patch: #7a3fb0; --delete: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171c; --panel: #1d2127; --text: #e4e7eb; --faint: #9aa4b0; --line: #343a43; --accent: #6db1ff;
    --get: #55c98c; --post: #6db1ff; --put: #e0a341; --patch: #c39af0; --delete: #f2877f;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
header { padding: 1rem 1.5rem; border-bottom: 1px solid var(--line) }
h1 { margin: 0; font-size: 1.3rem }
h2 { margin: 1.5rem 0 .5rem; font-size: 1.1rem }
h4 { margin: .8rem 0 .2rem; font-size: .9rem; color: var(--faint) }
a { color: var(--accent) }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere }
.page { display: grid; grid-template: auto 1fr / 17rem 1fr; align-items: start }
.find { grid-area: 1 / 1; position: sticky; top: 0; padding: 1rem 1.5rem .5rem }
nav { grid-area: 2 / 1; position: sticky; top: 5rem; max-height: calc(100vh - 5rem); overflow: auto; padding: 0 1.5rem 1rem }
nav ul { list-style: none; margin: .5rem 0; padding: 0 }
main { grid-area: 1 / 2 / 3; min-width: 0; padding: 0 1.5rem 3rem }
pre { margin: .3rem 0; padding: .5rem .7rem; overflow-x: auto; background: var(--back); border: 1px solid var(--line); border-radius: 4px; font: .85em/1.5 ui-monospace, monospace }
pre.curl { white-space: pre-wrap; overflow-wrap: anywhere }
button { font: inherit; font-size: .85rem; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .1rem .6rem; cursor: pointer }
input { width: 100%; padding: .4rem .5rem; font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 4px }
details { margin: .4rem 0; background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: .4rem .8rem }
summary { cursor: pointer }
.method { display: inline-block; min-width: 4rem; font-weight: 600; font-size: .85rem }
.get { color: var(--get) } .post { color: var(--post) } .put { color: var(--put) } .patch { color: var(--patch) } .delete { color: var(--delete) }
.summary, .type, .bounds, #notice { color: var(--faint) }
.required { color: var(--delete); font-size: .85rem }
.fields { list-style: none; margin: .2rem 0; padding-left: 1rem; border-left: 2px solid var(--line) }
.fields li { margin: .25rem 0 }
.name { font-weight: 600 }
[hidden] { display: none }
@media (max-width: 50rem) {
  header, .find, nav, main { padding-left: 1rem; padding-right: 1rem }
  .page { display: block }
  .find { background: var(--back); z-index: 1 }
  nav { position: static; max-height: none; border-top: 1px solid var(--line); padding-top: 1rem }
  details, section { scroll-margin-top: 6rem }
  summary .summary { display: block }
}
`
