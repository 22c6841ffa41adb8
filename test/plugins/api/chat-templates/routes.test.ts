import { chmod, lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ownIdentity } from '../../../../kernel/config/files/process-identity.js'
import { bundledTemplates } from '../../../../plugins/api/chat-templates/bundled.js'
import { apiOf } from '../support.js'

const api = apiOf('api-chat-templates', 'api-slots')

const GOOD = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}'
const FOLDER = 'var/lib/svc/models/chat-templates'

t.test('bundled templates are listed, checked and written where engines read them', async t => {
  const gateway = await api(t)
  const { json } = await gateway.call('GET', '/api/chat-templates')
  t.same(json.map((entry: { id: string }) => entry.id), ['auto', ...bundledTemplates.keys()])
  t.match(json[0], { label: /model file/, valid: true, error: null })
  t.ok(json.every((entry: { valid: boolean, bundled: boolean }) => entry.valid && entry.bundled))
  t.equal(await gateway.file(`${FOLDER}/gemma.jinja`), bundledTemplates.get('gemma')!.content, 'where the engines read them')
  t.match((await gateway.call('GET', '/api/chat-templates/gemma')).json, { id: 'gemma', content: /start_of_turn/ })
  t.match(await gateway.call('GET', '/api/chat-templates/none'), { status: 404, json: { error: { code: 'chat_template.not_found' } } })
  t.match(await gateway.call('GET', '/api/chat-templates/..%2f..%2fregistry'), { status: 404 })
})

t.test('add, change by hand, delete', async t => {
  const gateway = await api(t)
  const added = await gateway.call('POST', '/api/chat-templates', { id: 'mine', content: GOOD })
  t.equal(added.status, 200)
  t.match(added.json, { id: 'mine', label: 'mine', bundled: false, valid: true, error: null, line: null })
  t.equal(await gateway.file(`${FOLDER}/mine.jinja`), GOOD)
  const broken = await gateway.call('POST', '/api/chat-templates', { id: 'mine', content: `${GOOD}\n{% frob %}` })
  t.match(broken.json, { valid: false, error: /frob/, line: 3 })
  t.match(await gateway.file(`${FOLDER}/mine.jinja`), /frob/, 'written all the same')
  await writeFile(join(gateway.home, FOLDER, 'mine.jinja'), GOOD)
  const listed = (await gateway.call('GET', '/api/chat-templates')).json.find((entry: { id: string }) => entry.id === 'mine')
  t.match(listed, { valid: true }, 'looked at again, since the file has changed')

  await gateway.call('PUT', '/api/slots/agent/config', { chat_template: 'mine' })
  t.match(await gateway.call('DELETE', '/api/chat-templates/mine'), { status: 409, json: { error: { code: 'chat_template.in_use', details: { slots: ['agent'] } } } })
  await gateway.call('PUT', '/api/slots/agent/config', { chat_template: null })
  t.equal((await gateway.call('DELETE', '/api/chat-templates/mine')).status, 204)
  t.equal((await gateway.call('DELETE', '/api/chat-templates/mine')).status, 404)
  await gateway.call('POST', '/api/chat-templates', { id: 'plain', content: GOOD })
  t.equal(await gateway.file(`${FOLDER}/plain.jinja`), GOOD, 'a bundled one can be replaced')
  t.equal((await gateway.call('DELETE', '/api/chat-templates/plain')).status, 204)
  t.equal(await gateway.file(`${FOLDER}/plain.jinja`), bundledTemplates.get('plain')!.content)
  t.match(gateway.audit()[0], { action: 'chat_template.delete', target: 'plain', outcome: 'ok' })
})

t.test('a store elsewhere: what a dead writer left goes with a start, and a link is replaced', async t => {
  const store = t.testdir()
  const dead = `.meta.json.${ownIdentity().scope}-999999999-1-0123456789ab.tmp`
  await mkdir(join(store, '.tmp'))
  await writeFile(join(store, '.tmp', dead), 'half')
  await writeFile(join(store, '.tmp', 'a-part'), 'of a pull')
  const gateway = await api(t, { svc: `[models]\nstore = "${store}"\n` })
  t.notMatch(await readdir(store, { recursive: true }), dead)
  await gateway.call('GET', '/api/chat-templates')
  await writeFile(join(store, 'secret'), 'secret')
  await symlink(join(store, 'secret'), join(store, 'chat-templates', 'mine.jinja'))
  t.equal((await gateway.call('POST', '/api/chat-templates', { id: 'mine', content: GOOD })).status, 200)
  t.equal(await readFile(join(store, 'secret'), 'utf8'), 'secret')
  t.ok((await lstat(join(store, 'chat-templates', 'mine.jinja'))).isFile())
  t.strictSame((await readdir(store, { recursive: true })).filter(name => name.endsWith('.tmp') && name !== '.tmp'), [], 'and nothing stays behind')
})

t.test('lint alone, and what is refused', async t => {
  const gateway = await api(t)
  const linted = await gateway.call('POST', '/api/chat-templates/lint', { content: 'x\n{{ frob( }}' })
  t.match(linted.json, { valid: false, line: 2 })
  for (const id of ['Mine', '../x', '', '-x', 'auto', 'x'.repeat(42)]) {
    t.match(await gateway.call('POST', '/api/chat-templates', { id, content: GOOD }), { status: 400, json: { error: { code: 'chat_template.invalid_id' } } }, id)
  }
  t.match(await gateway.call('POST', '/api/chat-templates', { id: 'x' }), { status: 400, json: { error: { code: 'validation.invalid' } } })
  t.equal((await gateway.call('GET', '/api/chat-templates')).json.length, bundledTemplates.size + 1)
})

t.test('a template that never ends, and one that eats memory', async t => {
  const gateway = await api(t)
  const lint = async (content: string): Promise<unknown> => (await gateway.call('POST', '/api/chat-templates/lint', { content })).json
  const forever = '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'
  const [slow, next] = await Promise.all([lint(forever), lint(GOOD)])
  t.match(slow, { valid: false, error: /longer than 2 seconds/ })
  t.match(next, { valid: true }, 'the next one has a process of its own')
  t.match(await lint('{{ range(1000000000) | length }}'), { valid: false, error: /memory|longer|Invalid array length/ })
})

t.test('a store that cannot be written', { skip: process.getuid?.() === 0 ? 'root may write everywhere' : false }, async t => {
  const gateway = await api(t)
  await chmod(join(gateway.home, FOLDER), 0o555)
  t.match(await gateway.call('POST', '/api/chat-templates', { id: 'mine', content: GOOD }), { status: 400, json: { error: { code: 'chat_template.write_failed' } } })
  await chmod(join(gateway.home, FOLDER), 0o755)
})

t.test('a folder that is a file', async t => {
  const gateway = await api(t, { files: { [FOLDER]: 'not a folder' } })
  t.match(gateway.logs.map(line => line.message), [/bundled chat templates cannot be written/])
  t.match(await gateway.call('POST', '/api/chat-templates', { id: 'mine', content: GOOD }), { status: 400, json: { error: { code: 'chat_template.write_failed' } } })
  t.equal(await readFile(join(gateway.home, FOLDER), 'utf8'), 'not a folder')
})
