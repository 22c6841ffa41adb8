import t from 'tap'
import { bundledTemplates } from '../../../../plugins/api/chat-templates/bundled.js'
import { lint } from '../../../../plugins/api/chat-templates/lint.js'

const LOOP = '{% for m in messages %}{{ m.content }}'

t.test('the bundled templates are sound', async t => {
  for (const [id, { content }] of bundledTemplates) t.match(lint(content), { valid: true, error: null, line: null }, id)
  t.same(lint(bundledTemplates.get('chatml')!.content).warnings, [], 'one of them knows tools')
})

t.test('what is wrong, and in which line', async t => {
  const cases: ReadonlyArray<readonly [string, string, RegExp, number | null]> = [
    ['nothing', ' \n', /is empty/, null],
    ['a loop without an end', `a\n${LOOP}\n{% if m %}\nx\n{% endif %}\n`, /\{% for %\} is never closed/, 2],
    ['an inner block without an end', `${LOOP}\n\n{% if m %}x\n`, /\{% if %\} is never closed/, 3],
    ['an end without a beginning', '{{ a }}\n\n{% endif %}\n', /Unknown statement type: endif/, 3],
    ['a statement that does not exist', '{# c #}\n{% frob %}\n', /Unknown statement type: frob/, 2],
    ['an expression that breaks off', `{% for m in messages %}\n{{ m.content + }}\n{% endfor %}`, /Unexpected token/, 2],
    ['text that is never closed', '{{ a }}\n{{ \'abc }}\n{{ b }}', /\{\{ is never closed/, 2],
    ['a comment that is never closed', 'a\n\n{# no end\n', /a comment is never closed/, 3],
    ['a character that means nothing', '{{ a }}\n\n{{ b ? c }}\n', /Unexpected character: \?/, 3],
    ['a filter that does not exist', `${LOOP}\n{% if x %}{% elif y %}y{% else %}z{% endif %}\n{{ m.role | frob }}{% endfor %}`, /frob/, 3],
    ['in the branch of an elif', `${LOOP}{% if m.x %}a\n{% elif m.role == "user" %}\n{{ m.role | frob }}{% endif %}{% endfor %}`, /frob/, 3],
    ['in a macro, not where it is called', `{% macro x(m) %}\n\n{{ m.role | frob }}{% endmacro %}\n${LOOP}{{ x(m) }}{% endfor %}`, /frob/, 3],
    ['behind tags that the parser never sees', `${LOOP}\n{% generation %}x{% endgeneration %}\n{{ m.role | frob }}{% endfor %}`, /frob/, 3],
    ['braces and quotes inside of a tag', `{% set x = {"a": "}}%}"} %}\n${LOOP}\n{{ m.role | frob }}{% endfor %}`, /frob/, 3],
    ['a template that refuses everything', 'x\n{{ raise_exception("never") }}', /refuses a conversation: never/, 2],
    ['a template that says something else', 'hello', /a message does not show/, null],
    ['a template that forgets what was said', '{{ messages[-1].content }}', /a message does not show/, null]
  ]
  for (const [what, source, error, line] of cases) t.match(lint(source), { valid: false, error, line }, what)
})

t.test('what it cannot do is a warning', async t => {
  const refuses = `${LOOP}{% if m.role == "system" %}\n{{ raise_exception("no system here") }}{% endif %}{% endfor %}`
  t.match(lint(refuses), { valid: true, warnings: [/refuses a conversation with a system prompt: no system here \(line 2\)/, /tools/] })
  const breaks = `${LOOP}{% if m.tool_calls %}\n\n{{ m.role | frob }}{% endif %}{% endfor %}`
  t.match(lint(breaks), { valid: true, warnings: [/cannot render a conversation with tools: .*frob.*\(line 3\)/] })
})
